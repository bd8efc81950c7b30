#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <exception>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/output.h"
#include "server/api.h"
#include "server/engine.h"
#include "server/http_server.h"

namespace edgerunner::cli {
namespace {

struct ServeArguments {
  ModelArguments model;
  server::HttpServerOptions http;
  server::EngineOptions engine;
  std::string api_key;
  std::string cors = "*";
  std::uint32_t body_limit_mib = 16;
  std::uint32_t cache_tokens = 0;
  std::uint32_t longest_step_ms = 100;
  bool json = false;
};

void announce(const ServeArguments& arguments, const server::HttpServer& http) {
  if (arguments.json) {
    return write_json({{"host", arguments.http.host},
                       {"port", http.port()},
                       {"model", arguments.engine.model_id}});
  }
  fmt::print(stderr, "{} is served at http://{}:{}\n", arguments.engine.model_id,
             arguments.http.host, http.port());
}

void serve(ServeArguments arguments) {
  if (arguments.engine.model_id.empty()) {
    arguments.engine.model_id = std::filesystem::path(arguments.model.path).stem().string();
  }
  ModelOptions options = arguments.model.options();
  options.max_sequences = arguments.engine.parallel;
  options.cache_tokens = arguments.cache_tokens;
  // On cuda a text would not be the same with guesses.
  options.speculation.on_request = options.backend != BackendKind::cuda;
  options.progress = loading_progress();
  options.longest_step = std::chrono::milliseconds(arguments.longest_step_ms);
  arguments.http.body_limit = std::size_t{arguments.body_limit_mib} << 20;
  if (!arguments.cors.empty()) {
    arguments.http.headers = {{"Access-Control-Allow-Origin", arguments.cors}};
  }

  const Interrupt interrupt;
  server::Engine engine(arguments.engine);
  arguments.http.on_answer = [&engine](unsigned status) { engine.metrics().count_answer(status); };
  const server::Router router = server::make_router(engine, arguments.api_key);
  server::HttpServer http(arguments.http,
                          [&router](const auto& exchange) { router.handle(exchange); });
  const std::stop_callback stop(interrupt.token(), [&] {
    http.drain([&engine] {
      if (engine.ready()) engine.model().cancel_all();
    });
  });
  // Answers while it loads, so that who waits for it can tell loading from failing.
  std::exception_ptr failure;
  std::thread loading([&] {
    try {
      engine.set_model(Model::load(arguments.model.path, options));
      for (const std::string& remark : engine.info().remarks) fmt::print(stderr, "{}\n", remark);
      announce(arguments, http);
    } catch (...) {
      failure = std::current_exception();
      http.drain([] {});
    }
  });
  http.run();
  loading.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

void add_serve_command(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("serve", "Serve a model over HTTP, as OpenAI's clients expect");
  const auto arguments = std::make_shared<ServeArguments>();
  arguments->model.add_to(*command);
  arguments->model.add_speculation(*command);
  const std::string group = "Serving";
  // An empty one is a variable that a script forgot to set: neither every address nor no key.
  const auto not_empty = [](const std::string& text) {
    return std::string(text.empty() ? "it is empty" : "");
  };
  command->add_option("--host", arguments->http.host, "The address to listen on")
      ->check(not_empty)
      ->capture_default_str()
      ->group(group);
  command->add_option("--port", arguments->http.port, "The port; 0: any that is free")
      ->capture_default_str()
      ->group(group);
  command->add_option("--api-key", arguments->api_key, "What clients must send as a bearer token")
      ->check(not_empty)
      ->group(group);
  command->add_option("--alias", arguments->engine.model_id, "What clients call the model")
      ->group(group);
  command->add_option("--parallel", arguments->engine.parallel, "Sequences that run at once")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str()
      ->group(group);
  command->add_option("--queue", arguments->engine.queue, "Sequences that may wait beside them")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str()
      ->group(group);
  command
      ->add_option("--cache-tokens", arguments->cache_tokens,
                   "Tokens that the KV cache holds for all together; by default two contexts or "
                   "more, as memory allows")
      ->group(group);
  command
      ->add_option("--longest-step", arguments->longest_step_ms,
                   "Milliseconds that a piece of a prompt may keep running streams waiting; 0: no "
                   "bound")
      ->capture_default_str()
      ->group(group);
  command
      ->add_option("--body-limit", arguments->body_limit_mib, "Largest body of a request, in MiB")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str()
      ->group(group);
  command
      ->add_option("--cors", arguments->cors,
                   "The origin whose pages may call; * for all, empty for none")
      ->capture_default_str()
      ->group(group);
  command->add_flag("--json", arguments->json,
                    "Print one JSON document with host, port and model once it is ready");
  command->callback([arguments] { serve(*arguments); });
}

}  // namespace edgerunner::cli
