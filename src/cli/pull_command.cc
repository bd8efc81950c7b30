#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/download_line.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/usage_error.h"
#include "hub/known_models.h"
#include "hub/pull.h"
#include "hub/sha256.h"

namespace edgerunner::cli {
namespace {

using Json = nlohmann::ordered_json;

struct PullArguments {
  std::string name;
  std::vector<std::string> sha256;
  bool force = false;
  int tries = 6;
  bool json = false;
};

hub::ModelSource source_of(const std::string& name) {
  if (auto source = hub::find_source(name)) return *source;
  std::string known;
  for (const hub::KnownModel& model : hub::known_models()) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", model.name);
  }
  throw UsageError(fmt::format(
      "'{}' is no model's short name ({}), nor hf:OWNER/REPO/FILE.gguf, nor an URL", name, known));
}

std::vector<std::string> checksums(const std::vector<std::string>& given) {
  std::vector<std::string> sums = given;
  for (std::string& sum : sums) {
    std::transform(sum.begin(), sum.end(), sum.begin(),
                   [](char c) { return c >= 'A' && c <= 'F' ? char(c + 32) : c; });
    if (!hub::is_sha256(sum)) {
      throw UsageError(fmt::format("--sha256: '{}' is not 64 hexadecimal digits", sum));
    }
  }
  return sums;
}

Json to_json(const PullArguments& arguments, const std::vector<hub::PulledFile>& files) {
  Json list = Json::array();
  for (const hub::PulledFile& file : files) {
    list.push_back({{"path", file.path.string()},
                    {"bytes", file.bytes},
                    {"sha256", file.sha256.empty() ? Json() : Json(file.sha256)},
                    {"verified", file.verified},
                    {"fetched", file.fetched}});
  }
  return {
      {"name", arguments.name}, {"path", files.front().path.string()}, {"files", std::move(list)}};
}

void print(const std::vector<hub::PulledFile>& files) {
  for (const hub::PulledFile& file : files) {
    fmt::print(stderr, "{}: {}, {}{}\n", file.path.filename().string(), format_bytes(file.bytes),
               file.fetched ? "fetched" : "there already",
               file.verified ? ", SHA-256 verified" : "; no SHA-256 is known to verify it by");
  }
  write_output(files.front().path.string() + "\n");
}

void pull(const PullArguments& arguments) {
  const hub::ModelSource source = source_of(arguments.name);
  hub::PullOptions options;
  options.sha256 = checksums(arguments.sha256);
  options.again = arguments.force;
  options.download.tries = arguments.tries;
  const Interrupt interrupt;
  options.download.stop = interrupt.token();
  DownloadLine line;
  options.on_progress = [&line](const std::filesystem::path& file, std::size_t index,
                                std::size_t count, const hub::DownloadProgress& progress) {
    std::string name = file.filename().string();
    if (count > 1) name = fmt::format("{} ({} of {})", name, index + 1, count);
    const auto text =
        line.update(name, progress.received, progress.total, DownloadLine::Clock::now());
    if (text) show_progress(*text);
  };
  const std::vector<hub::PulledFile> files = hub::pull(source, options);
  clear_progress();
  if (arguments.json) return write_json(to_json(arguments, files));
  print(files);
}

}  // namespace

void add_pull_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "pull", "Fetch a model; what a run that was cut short left, the next goes on from");
  const auto arguments = std::make_shared<PullArguments>();
  command
      ->add_option("NAME", arguments->name,
                   "A short name (edgerunner list --known), hf:OWNER/REPO/FILE.gguf, or an URL")
      ->required();
  add_repeatable(*command, "--sha256", arguments->sha256,
                 "The checksum that the file must have; repeated for the shards of a split one");
  command->add_flag("--force", arguments->force, "Fetch also what is there already");
  command->add_option("--tries", arguments->tries, "Tries in a row that may fail")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "Print one JSON document");
  command->callback([arguments] { pull(*arguments); });
}

}  // namespace edgerunner::cli
