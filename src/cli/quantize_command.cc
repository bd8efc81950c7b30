#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/cpu_features.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/usage_error.h"
#include "quantize/quantize_file.h"

namespace edgerunner::cli {
namespace {

struct QuantizeArguments {
  std::string in;
  std::string out;
  std::string type;
  int threads = 0;
  std::uint64_t max_shard_bytes = 0;
  bool json = false;
};

double bits_per_weight(std::uint64_t bytes, std::uint64_t elements) {
  return 8.0 * static_cast<double>(bytes) /
         static_cast<double>(std::max<std::uint64_t>(elements, 1));
}

void print(const QuantizeArguments& arguments, const QuantizeReport& report, double seconds) {
  const double before = bits_per_weight(report.bytes_in, report.elements);
  const double after = bits_per_weight(report.bytes_out, report.elements);
  std::map<std::string, std::uint32_t> types;
  for (const auto& [type, count] : report.tensors) types[std::string(traits(type).name)] = count;
  if (arguments.json) {
    write_json({{"file", arguments.out},
                {"elements", report.elements},
                {"bytes_in", report.bytes_in},
                {"bytes_out", report.bytes_out},
                {"bits_per_weight_in", before},
                {"bits_per_weight", after},
                {"tensors", types},
                {"seconds", seconds}});
    return;
  }
  std::string counts;
  for (const auto& [name, count] : types) {
    counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, name);
  }
  write_output(
      fmt::format("{}: {:.1f} MB of tensors ({:.2f} bits a weight) from {:.1f} MB ({:.2f}), "
                  "in {:.1f} s\ntensors: {}\n",
                  arguments.out, static_cast<double>(report.bytes_out) / 1e6, after,
                  static_cast<double>(report.bytes_in) / 1e6, before, seconds, counts));
}

void quantize(const QuantizeArguments& arguments) {
  const auto recipe = find_recipe(arguments.type);
  if (!recipe) {
    throw UsageError(fmt::format("'{}' is not a type to quantise to; there are {}", arguments.type,
                                 fmt::join(recipe_names(), ", ")));
  }
  const auto start = std::chrono::steady_clock::now();
  const gguf::File model = gguf::File::open(arguments.in);
  QuantizeOptions options;
  options.threads = arguments.threads > 0 ? arguments.threads : available_cores();
  options.max_shard_bytes = arguments.max_shard_bytes;
  options.progress = [](std::string_view tensor, std::uint64_t done, std::uint64_t total) {
    show_progress(fmt::format(
        "quantize: {:3.0f} %  {}",
        100.0 * static_cast<double>(done) / static_cast<double>(std::max<std::uint64_t>(total, 1)),
        tensor));
  };
  const QuantizeReport report = quantize_file(model, arguments.out, *recipe, options);
  clear_progress();
  print(arguments, report,
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
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
