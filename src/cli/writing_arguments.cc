#include "cli/writing_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/cpu_features.h"
#include "cli/output.h"
#include "cli/usage_error.h"

namespace edgerunner::cli {
namespace {

double bits_per_weight(std::uint64_t bytes, std::uint64_t elements) {
  return 8.0 * static_cast<double>(bytes) /
         static_cast<double>(std::max<std::uint64_t>(elements, 1));
}

}  // namespace

Recipe require_recipe(std::string_view name) {
  const auto recipe = find_recipe(name);
  if (!recipe) {
    throw UsageError(fmt::format("'{}' is not a type to quantise to; there are {}", name,
                                 fmt::join(recipe_names(), ", ")));
  }
  return *recipe;
}

void WritingArguments::add_to(CLI::App& command) {
  command.add_option("OUT", out, "File to write")->required();
  command.add_option("--imatrix", importance,
                     "Importance matrix, of `imatrix`: weigh errors by what the inputs were");
  command.add_option("--threads", threads, "Threads (default: the cores there are)")
      ->check(CLI::Range(1, 1024));
  command
      .add_option("--max-shard-size", max_shard_bytes,
                  "Split the file so that none has more bytes of tensors (500M, 2G)")
      ->transform(CLI::AsSizeValue(true));
  command.add_flag("--json", json, "Print one JSON document");
}

std::optional<ImportanceMatrix> WritingArguments::load_importance() const {
  if (importance.empty()) return std::nullopt;
  return ImportanceMatrix::load(importance);
}

QuantizeOptions WritingArguments::options(const std::string& command) const {
  QuantizeOptions options;
  options.threads = threads > 0 ? threads : available_cores();
  options.max_shard_bytes = max_shard_bytes;
  options.progress = [command](std::string_view tensor, std::uint64_t done, std::uint64_t total) {
    show_progress(fmt::format(
        "{}: {:3.0f} %  {}", command,
        100.0 * static_cast<double>(done) / static_cast<double>(std::max<std::uint64_t>(total, 1)),
        tensor));
  };
  return options;
}

void WritingArguments::print(const QuantizeReport& report, double seconds) const {
  const double before = bits_per_weight(report.bytes_in, report.elements);
  const double after = bits_per_weight(report.bytes_out, report.elements);
  std::map<std::string, std::uint32_t> types;
  for (const auto& [type, count] : report.tensors) types[std::string(traits(type).name)] = count;
  if (json) {
    write_json({{"file", out},
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
                  out, static_cast<double>(report.bytes_out) / 1e6, after,
                  static_cast<double>(report.bytes_in) / 1e6, before, seconds, counts));
}

}  // namespace edgerunner::cli
