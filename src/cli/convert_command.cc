#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/cpu_features.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/quantize_report.h"
#include "cli/usage_error.h"
#include "convert/convert_folder.h"

namespace edgerunner::cli {
namespace {

struct ConvertArguments {
  std::string folder;
  std::string out;
  std::string type;
  int threads = 0;
  std::uint64_t max_shard_bytes = 0;
  bool json = false;
};

void convert_model(const ConvertArguments& arguments) {
  std::optional<Recipe> recipe;
  if (!arguments.type.empty()) recipe = require_recipe(arguments.type);
  const auto start = std::chrono::steady_clock::now();
  QuantizeOptions options;
  options.threads = arguments.threads > 0 ? arguments.threads : available_cores();
  options.max_shard_bytes = arguments.max_shard_bytes;
  options.progress = show_tensor_progress("convert");
  const QuantizeReport report =
      convert::convert_folder(arguments.folder, arguments.out, recipe, options);
  clear_progress();
  print_report(arguments.out, report,
               std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
               arguments.json);
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
  command->add_option("OUT", arguments->out, "File to write")->required();
  command->add_option("--type", arguments->type,
                      fmt::format("One of {}; default: the type of the folder's embedding",
                                  fmt::join(recipe_names(), ", ")));
  command->add_option("--threads", arguments->threads, "Threads (default: the cores there are)")
      ->check(CLI::Range(1, 1024));
  command
      ->add_option("--max-shard-size", arguments->max_shard_bytes,
                   "Split the file so that none has more bytes of tensors (500M, 2G)")
      ->transform(CLI::AsSizeValue(true));
  command->add_flag("--json", arguments->json, "Print one JSON document");
  command->callback([arguments] { convert_model(*arguments); });
}

}  // namespace edgerunner::cli
