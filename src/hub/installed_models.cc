#include "hub/installed_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <system_error>

#include "edgerunner/error.h"
#include "hub/model_source.h"

namespace edgerunner::hub {
namespace {

// The file that `path` is, or is a part of; empty for anything else.
std::filesystem::path file_of(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  if (name.ends_with(".gguf")) return path;
  const std::size_t end = name.rfind(".gguf.");
  if (!name.ends_with(".part") || end == std::string::npos) return {};
  return path.parent_path() / name.substr(0, end + 5);
}

}  // namespace

std::vector<InstalledModel> installed_models(const std::filesystem::path& folder) {
  // By the first file, as below the folder: each with what is there of it and of its further
  // shards.
  std::map<std::filesystem::path, InstalledModel> models;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator
           entry(folder, std::filesystem::directory_options::skip_permission_denied, error),
       end;
       !error && entry != end; entry.increment(error)) {
    std::error_code gone;
    const std::filesystem::path file = file_of(entry->path());
    if (file.empty() || !entry->is_regular_file(gone)) continue;
    ModelSource source;
    source.url = source.file = file.lexically_relative(folder);
    const auto shards = shards_of(source);
    InstalledModel& model = models[shards.front().file];
    model.path = folder / shards.front().file;
    model.files.push_back(entry->path());
    model.bytes += entry->file_size(gone);
    for (const ModelSource& shard : shards) {
      model.complete &= std::filesystem::exists(folder / shard.file, gone);
    }
  }
  std::vector<InstalledModel> list;
  for (auto& [file, model] : models) {
    model.name = name_of_file(file);
    std::sort(model.files.begin(), model.files.end());
    list.push_back(std::move(model));
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return list;
}

void remove_model(const InstalledModel& model, const std::filesystem::path& folder) {
  for (const std::filesystem::path& file : model.files) {
    std::error_code error;
    std::filesystem::remove(file, error);
    if (error) {
      throw Error(ErrorCode::io,
                  fmt::format("can't remove '{}': {}", file.string(), error.message()));
    }
  }
  std::error_code not_empty;
  for (std::filesystem::path parent = model.path.parent_path();
       parent != folder && std::filesystem::remove(parent, not_empty);) {
    parent = parent.parent_path();
  }
}

}  // namespace edgerunner::hub
