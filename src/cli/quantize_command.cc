#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <optional>

#include "base/cpu_features.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/quantize_report.h"
#include "quantize/quantize_file.h"

namespace edgerunner::cli {
namespace {

struct QuantizeArguments {
  std::string in;
  std::string out;
  std::string type;
  std::string importance;
  int threads = 0;
  std::uint64_t max_shard_bytes = 0;
  bool json = false;
};

void quantize(const QuantizeArguments& arguments) {
  const Recipe recipe = require_recipe(arguments.type);
  const auto start = std::chrono::steady_clock::now();
  const gguf::File model = gguf::File::open(arguments.in);
  std::optional<ImportanceMatrix> importance;
  if (!arguments.importance.empty()) {
    importance = ImportanceMatrix::load(arguments.importance);
  }
  QuantizeOptions options;
  options.importance = importance ? &*importance : nullptr;
  options.threads = arguments.threads > 0 ? arguments.threads : available_cores();
  options.max_shard_bytes = arguments.max_shard_bytes;
  options.progress = show_tensor_progress("quantize");
  const QuantizeReport report = quantize_file(model, arguments.out, recipe, options);
  clear_progress();
  print_report(arguments.out, report,
               std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
               arguments.json);
}

}  // namespace

void add_quantize_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("quantize", "Write a model in another element type");
  const auto arguments = std::make_shared<QuantizeArguments>();
  command->add_option("IN", arguments->in, "GGUF file, of any type")->required();
  command->add_option("OUT", arguments->out, "File to write")->required();
  command
      ->add_option("TYPE", arguments->type,
                   fmt::format("One of {}", fmt::join(recipe_names(), ", ")))
      ->required();
  command->add_option("--imatrix", arguments->importance,
                      "Importance matrix, of `imatrix`: weigh errors by what the inputs were");
  command->add_option("--threads", arguments->threads, "Threads (default: the cores there are)")
      ->check(CLI::Range(1, 1024));
  command
      ->add_option("--max-shard-size", arguments->max_shard_bytes,
                   "Split the file so that none has more bytes of tensors (500M, 2G)")
      ->transform(CLI::AsSizeValue(true));
  command->add_flag("--json", arguments->json, "Print one JSON document");
  command->callback([arguments] { quantize(*arguments); });
}

}  // namespace edgerunner::cli
