#include "convert/model_folder.h"

#include <fmt/format.h>

#include <set>

#include "edgerunner/error.h"

namespace edgerunner::convert {
namespace {

constexpr std::string_view kWeights = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";

// An index may name files of its own folder alone.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos &&
         name.ends_with(".safetensors");
}

}  // namespace

ModelFolder::ModelFolder(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path_, ignored)) {
    throw Error(
        ErrorCode::io,
        fmt::format("'{}' is not a folder; give the one that holds config.json", path_.string()));
  }
  config_ = read_json(path_ / "config.json");
  if (std::filesystem::exists(path_ / kIndex, ignored)) {
    open_index(path_ / kIndex);
  } else if (std::filesystem::exists(path_ / kWeights, ignored)) {
    open(path_ / kWeights);
  } else {
    throw Error(ErrorCode::invalid_file,
                fmt::format("'{}' has neither {} nor {}; weights in another format must be saved "
                            "as safetensors first",
                            path_.string(), kWeights, kIndex));
  }
  for (const Safetensors& file : files_) {
    for (const SourceTensor& tensor : file.tensors()) {
      if (!tensors_.emplace(tensor.name, &tensor).second) {
        throw Error(ErrorCode::invalid_file,
                    fmt::format("{}: tensor '{}' is in two files", path_.string(), tensor.name));
      }
    }
  }
}

const SourceTensor* ModelFolder::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : found->second;
}

void ModelFolder::open(const std::filesystem::path& file) { files_.emplace_back(file); }

void ModelFolder::open_index(const std::filesystem::path& index) {
  const nlohmann::json json = read_json(index);
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (!json.is_object() || map == json.end() || !map->is_object()) {
    throw Error(ErrorCode::invalid_file, fmt::format("{}: lacks 'weight_map'", index.string()));
  }
  std::set<std::string> names;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string() || !is_plain_name(file.get<std::string>())) {
      throw Error(ErrorCode::invalid_file,
                  fmt::format("{}: tensor '{}' stands in a file that is not named *.safetensors in "
                              "this folder",
                              index.string(), tensor));
    }
    names.insert(file.get<std::string>());
  }
  for (const std::string& name : names) open(path_ / name);
  std::set<std::string_view> there;
  for (const Safetensors& file : files_) {
    for (const SourceTensor& tensor : file.tensors()) there.insert(tensor.name);
  }
  for (const auto& [tensor, file] : map->items()) {
    if (there.contains(tensor)) continue;
    throw Error(ErrorCode::invalid_file,
                fmt::format("{}: tensor '{}' is listed, but is not in {}", index.string(), tensor,
                            file.get<std::string>()));
  }
}

}  // namespace edgerunner::convert
