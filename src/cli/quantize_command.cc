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
  WritingArguments writing;
};

void quantize(const QuantizeArguments& arguments) {
  const Recipe recipe = require_recipe(arguments.type);
  const auto start = std::chrono::steady_clock::now();
  const gguf::File model = gguf::File::open(arguments.in);
  const std::optional<ImportanceMatrix> importance = arguments.writing.load_importance();
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
  command->callback([arguments] { quantize(*arguments); });
}

}  // namespace edgerunner::cli
