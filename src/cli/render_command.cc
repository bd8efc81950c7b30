#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/parse_json.h"
#include "chat/jinja/template.h"
#include "chat/local_time.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/usage_error.h"
#include "edgerunner/error.h"
#include "gguf/file.h"
#include "tokenizer/load.h"

namespace edgerunner::cli {
namespace {

using Json = nlohmann::ordered_json;

struct RenderArguments {
  std::optional<std::string> model;
  std::optional<std::string> template_file;
  std::string messages;
  std::optional<std::string> now;
  bool json = false;
};

Json read_variables(const std::string& path) {
  Json document;
  try {
    document = parse_json<Json>(read_file(path));
  } catch (const std::exception& error) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", path, error.what()));
  }
  if (document.is_array()) return {{"messages", std::move(document)}};
  if (document.is_object()) return document;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: neither an array of messages nor an object of variables", path));
}

std::string model_template(const std::string& path, Json& variables) {
  const gguf::File file = gguf::File::open(path);
  const auto source = file.get_string("tokenizer.chat_template");
  if (!source) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: the file has no chat template (tokenizer.chat_template); give one "
                            "by --template",
                            path));
  }
  const auto tokenizer = load_tokenizer(file);
  const auto add = [&](const char* name, TokenId token) {
    if (token != kNoToken && !variables.contains(name)) {
      variables[name] = tokenizer->token_bytes(token, true);
    }
  };
  add("bos_token", tokenizer->bos());
  add("eos_token", tokenizer->eos());
  return std::string(*source);
}

void render(const RenderArguments& arguments) {
  if (arguments.model.has_value() == arguments.template_file.has_value()) {
    throw UsageError("give exactly one of MODEL and --template");
  }
  LocalTime now = local_time_now();
  if (arguments.now) {
    try {
      now = parse_local_time(*arguments.now);
    } catch (const Error& error) {
      throw UsageError(fmt::format("--now: {}", error.what()));
    }
  }
  Json variables = read_variables(arguments.messages);
  const std::string source = arguments.model ? model_template(*arguments.model, variables)
                                             : read_file(*arguments.template_file);
  const std::string text = jinja::Template(source).render(variables, now);
  if (arguments.json) {
    write_json({{"text", text}});
  } else {
    write_output(text);
  }
}

}  // namespace

void add_render_command(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("render", "What a chat template makes of a conversation");
  const auto arguments = std::make_shared<RenderArguments>();
  accept_model_name(*command->add_option("MODEL", arguments->model,
                                         "A GGUF file that holds a chat template, or its name"));
  command->add_option("--template", arguments->template_file, "A file that holds one, instead");
  command
      ->add_option("--messages", arguments->messages,
                   "A JSON file: an array of messages, or an object of the template's variables")
      ->required();
  command->add_option("--now", arguments->now,
                      "The time that the template sees, as 2026-01-02T03:04:05");
  command->add_flag("--json", arguments->json, R"(Print {"text":"..."})");
  command->callback([arguments] { render(*arguments); });
}

}  // namespace edgerunner::cli
