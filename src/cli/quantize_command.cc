#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <optional>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/writing_arguments.h"
#include "quantize/quantize_file.h"

namespace edgerunner::cli {
namespace {

struct QuantizeArguments {
  std::string in;
  std::string type;
  std::string importance;
  WritingArguments writing;
};

void quantize(const QuantizeArguments& arguments) {
  const Recipe recipe = require_recipe(arguments.type);
  const auto start = std::chrono::steady_clock::now();
  const gguf::File model = gguf::File::open(arguments.in);
  std::optional<ImportanceMatrix> importance;
  if (!arguments.importance.empty()) {
    importance = ImportanceMatrix::load(arguments.importance);
  }
  QuantizeOptions options = arguments.writing.options("quantize");
  options.importance = importance ? &*importance : nullptr;
  const QuantizeReport report = quantize_file(model, arguments.writing.out, recipe, options);
  clear_progress();
  arguments.writing.print(
      report, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

}  // namespace

void add_quantize_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("quantize", "Write a model in another element type");
  const auto arguments = std::make_shared<QuantizeArguments>();
  accept_model_name(
      *command->add_option("IN", arguments->in, "GGUF file of any type, or a model's name")
           ->required());
  arguments->writing.add_to(*command);
  command
      ->add_option("TYPE", arguments->type,
                   fmt::format("One of {}", fmt::join(recipe_names(), ", ")))
      ->required();
  command->add_option("--imatrix", arguments->importance,
                      "Importance matrix, of `imatrix`: weigh errors by what the inputs were");
  command->callback([arguments] { quantize(*arguments); });
}

}  // namespace edgerunner::cli
