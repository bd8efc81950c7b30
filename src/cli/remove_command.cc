#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/download_line.h"
#include "cli/output.h"
#include "edgerunner/error.h"
#include "hub/installed_models.h"
#include "hub/model_source.h"
#include "hub/models_folder.h"

namespace edgerunner::cli {
namespace {

using Json = nlohmann::ordered_json;

// The model of the folder that a name, or the path of one of its files, means.
hub::InstalledModel find_model(const std::filesystem::path& folder, const std::string& name) {
  std::filesystem::path wanted = folder / name;  // an absolute one is itself
  if (const auto source = hub::find_source(name)) wanted = folder / source->file;
  for (const hub::InstalledModel& model : hub::installed_models(folder)) {
    const auto is_wanted = [&](const std::filesystem::path& file) {
      return file == wanted || file.string() == wanted.string() + ".gguf";
    };
    if (model.name == name || is_wanted(model.path) ||
        std::any_of(model.files.begin(), model.files.end(), is_wanted)) {
      return model;
    }
  }
  throw Error(ErrorCode::io, fmt::format("there is no model '{}' in {}; edgerunner list shows them",
                                         name, folder.string()));
}

void remove(const std::vector<std::string>& names, bool json) {
  const std::filesystem::path folder = hub::models_folder();
  std::vector<hub::InstalledModel> models;  // all are found before one is removed
  models.reserve(names.size());
  for (const std::string& name : names) models.push_back(find_model(folder, name));
  Json removed = Json::array();
  for (const hub::InstalledModel& model : models) {
    hub::remove_model(model, folder);
    removed.push_back({{"name", model.name}, {"bytes", model.bytes}});
  }
  if (json) return write_json({{"removed", std::move(removed)}});
  for (const hub::InstalledModel& model : models) {
    fmt::print(stderr, "removed {}, {}\n", model.name, format_bytes(model.bytes));
  }
}

}  // namespace

void add_remove_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("rm", "Remove fetched models");
  const auto names = std::make_shared<std::vector<std::string>>();
  const auto json = std::make_shared<bool>(false);
  command->add_option("NAME", *names, "What edgerunner list shows, or what was pulled")->required();
  command->add_flag("--json", *json, "Print one JSON document");
  command->callback([names, json] { remove(*names, *json); });
}

}  // namespace edgerunner::cli
