#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "convert/config.h"
#include "convert/safetensors.h"

namespace edgerunner::convert {

// A model as Hugging Face's libraries store it: a folder with config.json, tokenizer.json and the
// weights in model.safetensors, or in several files that model.safetensors.index.json lists. All of
// it is untrusted; errors name the file. Tensors are views into the mapped files, which stay open.
class ModelFolder {
 public:
  explicit ModelFolder(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  Config config() const { return {config_, (path_ / "config.json").string()}; }
  // By name, over all files.
  const std::map<std::string_view, const SourceTensor*>& tensors() const { return tensors_; }
  const SourceTensor* find(std::string_view name) const;

 private:
  void open(const std::filesystem::path& file);
  void open_index(const std::filesystem::path& index);

  std::filesystem::path path_;
  nlohmann::json config_;
  std::vector<Safetensors> files_;
  std::map<std::string_view, const SourceTensor*> tensors_;
};

}  // namespace edgerunner::convert
