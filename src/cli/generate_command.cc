#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "cli/commands.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/summary_line.h"
#include "cli/usage_error.h"
#include "edgerunner/model.h"

namespace edgerunner::cli {
namespace {

struct GenerateArguments {
  ModelArguments model;
  InputOptions input;
  SamplingArguments sampling;
  std::optional<std::string> json_schema;
  std::optional<std::string> grammar;
  bool stats = false;
  bool json = false;
};

nlohmann::ordered_json to_json(const std::string& text, const Summary& summary) {
  return {
      {"text", text},
      {"ids", summary.tokens},
      {"prompt_tokens", summary.prompt_tokens},
      {"generated_tokens", summary.generated_tokens},
      {"reused_tokens", summary.reused_tokens},
      {"drafted_tokens", summary.drafted_tokens},
      {"accepted_tokens", summary.accepted_tokens},
      {"context_shifts", summary.context_shifts},
      {"finish_reason", name(summary.finish_reason)},
      {"prefill_tps", summary.prefill_tps},
      {"decode_tps", summary.decode_tps},
      {"time_to_first_token_s", summary.time_to_first_token_s},
  };
}

// The text of a schema or grammar. An empty one would mean none.
std::string read_rules(const std::string& path, std::string_view option) {
  std::string text = read_file(path);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    throw UsageError(fmt::format("{}: {} is empty", option, path));
  }
  return text;
}

void generate(const GenerateArguments& arguments) {
  arguments.input.check("--prompt, --file, --ids and -");
  GenerateOptions options = arguments.sampling.resolve(arguments.model.seed);
  if (arguments.json_schema && arguments.grammar) {
    throw UsageError("give at most one of --json-schema and --grammar");
  }
  if (arguments.json_schema) {
    options.json_schema = read_rules(*arguments.json_schema, "--json-schema");
  }
  if (arguments.grammar) options.grammar = read_rules(*arguments.grammar, "--grammar");
  std::vector<TokenId> ids;
  std::string prompt;
  if (arguments.input.ids) {
    ids = parse_ids(*arguments.input.ids);
  } else {
    prompt = arguments.input.read_text();
  }

  const Interrupt interrupt;
  ModelOptions loading = arguments.model.options();
  loading.progress = loading_progress();
  Model model = Model::load(arguments.model.path, loading);
  for (const std::string& remark : model.info().remarks) fmt::print(stderr, "{}\n", remark);
  Generation generation = arguments.input.ids ? model.generate(ids, options, interrupt.token())
                                              : model.generate(prompt, options, interrupt.token());
  std::string text;
  for (const std::string& piece : generation) {
    text += piece;
    if (!arguments.json) write_output(piece);
  }
  const Summary& summary = generation.summary();
  if (arguments.json) {
    write_json(to_json(text, summary));
  } else if (!text.ends_with('\n')) {
    write_output("\n");
  }
  const bool cancelled = summary.finish_reason == FinishReason::cancelled;
  if (arguments.stats || (cancelled && !arguments.json)) {
    fmt::print(stderr, "{}", summary_line(summary));
  }
}

}  // namespace

void add_generate_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("generate", "Continue a prompt, streaming the text");
  const auto arguments = std::make_shared<GenerateArguments>();
  arguments->model.add_to(*command);
  arguments->input.add_to(*command, "--prompt", true);
  command
      ->add_option("--max-tokens", arguments->sampling.options.max_tokens,
                   "Most tokens to generate; 0: until the model ends or the context is full")
      ->capture_default_str();
  arguments->sampling.add_to(*command);
  arguments->model.add_speculation(*command);
  command->add_option("--json-schema", arguments->json_schema,
                      "A file with a JSON Schema that the text must satisfy");
  command->add_option("--grammar", arguments->grammar,
                      "A file with a grammar (GBNF) that the text must be of");
  command->add_flag("--stats", arguments->stats, "Print a line of statistics on standard error");
  command->add_flag("--json", arguments->json, "Print one JSON document instead of streaming");
  command->callback([arguments] { generate(*arguments); });
}

}  // namespace edgerunner::cli
