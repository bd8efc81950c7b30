#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <optional>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/writing_arguments.h"
#include "convert/convert_folder.h"

namespace edgerunner::cli {
namespace {

struct ConvertArguments {
  std::string folder;
  std::string type;
  WritingArguments writing;
};

void convert_model(const ConvertArguments& arguments) {
  std::optional<Recipe> recipe;
  if (!arguments.type.empty()) recipe = require_recipe(arguments.type);
  const auto start = std::chrono::steady_clock::now();
  const std::optional<ImportanceMatrix> importance = arguments.writing.load_importance();
  QuantizeOptions options = arguments.writing.options("convert");
  options.importance = importance ? &*importance : nullptr;
  const QuantizeReport report =
      convert::convert_folder(arguments.folder, arguments.writing.out, recipe, options);
  clear_progress();
  arguments.writing.print(
      report, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

}  // namespace

void add_convert_command(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("convert", "Make a GGUF file of a Hugging Face model folder");
  const auto arguments = std::make_shared<ConvertArguments>();
  command
      ->add_option("DIR", arguments->folder,
                   "Folder with config.json, tokenizer.json and safetensors")
      ->required();
  arguments->writing.add_to(*command);
  command->add_option("--type", arguments->type,
                      fmt::format("One of {}; default: the type of the folder's embedding",
                                  fmt::join(recipe_names(), ", ")));
  command->callback([arguments] { convert_model(*arguments); });
}

}  // namespace edgerunner::cli
