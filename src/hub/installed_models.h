#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace edgerunner::hub {

// A model in the folder of models, or what a pull that didn't end left of it.
struct InstalledModel {
  std::string name;                          // what a MODEL argument may say
  std::filesystem::path path;                // of its first file
  std::vector<std::filesystem::path> files;  // shards and parts
  std::uint64_t bytes = 0;                   // of all of them
  bool complete = true;                      // no shard is missing or only a part
};

// By name. A folder that doesn't exist has none.
std::vector<InstalledModel> installed_models(const std::filesystem::path& folder);

// Removes a model's files, and the folders that this leaves empty. Throws Error(io) that names the
// file where the system refuses.
void remove_model(const InstalledModel& model, const std::filesystem::path& folder);

}  // namespace edgerunner::hub
