#pragma once

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "server/api.h"
#include "server/engine.h"
#include "server/http_server.h"
#include "support/scripted_model.h"

namespace edgerunner::test {

// A server on a free port of this machine, before a model whose output a script dictates.
class TestServer {
 public:
  explicit TestServer(server::HttpServerOptions http = {}, server::EngineOptions engine = {},
                      const std::string& api_key = "")
      : engine_(std::move(engine)),
        router_(server::make_router(engine_, api_key)),
        http_(on_free_port(std::move(http)),
              [this](const auto& exchange) { router_.handle(exchange); }),
        thread_([this] { http_.run(); }) {}

  ~TestServer() {
    drain();
    if (thread_.joinable()) thread_.join();
  }

  // Begins its end, which join() waits for.
  void drain() {
    http_.drain([this] {
      if (engine_.ready()) engine_.model().cancel_all();
    });
  }
  void join() { thread_.join(); }

  ScriptedExecutor* load(ScriptedExecutor::Script script,
                         const ScriptedModelOptions& options = {}) {
    ScriptedModel scripted(std::move(script), options);
    engine_.set_model(std::move(scripted.model));
    return scripted.executor;
  }

  std::uint16_t port() const { return http_.port(); }
  server::Engine& engine() { return engine_; }
  server::HttpServer& http() { return http_; }

 private:
  static server::HttpServerOptions on_free_port(server::HttpServerOptions options) {
    options.port = 0;
    options.threads = 2;
    return options;
  }

  server::Engine engine_;
  server::Router router_;
  server::HttpServer http_;
  std::thread thread_;
};

}  // namespace edgerunner::test
