#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/download_line.h"
#include "cli/output.h"
#include "hub/installed_models.h"
#include "hub/known_models.h"
#include "hub/models_folder.h"

namespace edgerunner::cli {
namespace {

using Json = nlohmann::ordered_json;

void list_known(bool json) {
  Json models = Json::array();
  std::string text;
  for (const hub::KnownModel& known : hub::known_models()) {
    models.push_back({{"name", known.name},
                      {"source", known.source},
                      {"sha256", known.sha256.empty() ? Json() : Json(known.sha256)}});
    text += fmt::format("{:<14} {}\n", known.name, known.source);
  }
  if (json) return write_json({{"models", std::move(models)}});
  write_output(text);
}

Json to_json(const std::filesystem::path& folder, const std::vector<hub::InstalledModel>& models) {
  Json list = Json::array();
  for (const hub::InstalledModel& model : models) {
    Json files = Json::array();
    for (const std::filesystem::path& file : model.files) files.push_back(file.string());
    list.push_back({{"name", model.name},
                    {"path", model.path.string()},
                    {"bytes", model.bytes},
                    {"complete", model.complete},
                    {"files", std::move(files)}});
  }
  return {{"folder", folder.string()}, {"models", std::move(list)}};
}

void list_models(bool json) {
  const std::filesystem::path folder = hub::models_folder();
  const std::vector<hub::InstalledModel> models = hub::installed_models(folder);
  if (json) return write_json(to_json(folder, models));
  std::size_t width = 0;
  for (const hub::InstalledModel& model : models) width = std::max(width, model.name.size());
  std::string text;
  for (const hub::InstalledModel& model : models) {
    text += fmt::format("{:<{}}  {:>9}{}\n", model.name, width, format_bytes(model.bytes),
                        model.complete ? "" : "  incomplete");
  }
  write_output(text);
}

}  // namespace

void add_list_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("list", "The models that were fetched");
  const auto known = std::make_shared<bool>(false);
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--known", *known, "The models that have short names, fetched or not");
  command->add_flag("--json", *json, "Print one JSON document");
  command->callback([known, json] { *known ? list_known(*json) : list_models(*json); });
}

}  // namespace edgerunner::cli
