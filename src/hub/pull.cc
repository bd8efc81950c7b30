#include "hub/pull.h"

#include <fmt/format.h>

#include <optional>
#include <system_error>

#include "base/environment.h"
#include "edgerunner/error.h"
#include "hub/models_folder.h"
#include "hub/sha256.h"

namespace edgerunner::hub {
namespace {

// The file where it is there already; nullopt where it has to be fetched.
std::optional<PulledFile> present(const std::filesystem::path& path, const std::string& sha256) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  PulledFile file;
  file.path = path;
  file.bytes = std::filesystem::file_size(path);
  if (!sha256.empty()) {
    file.sha256 = sha256_of_file(path);
    file.verified = file.sha256 == sha256;
    if (!file.verified) return std::nullopt;
  }
  return file;
}

}  // namespace

std::vector<PulledFile> pull(const ModelSource& source, const PullOptions& options) {
  std::vector<ModelSource> shards = shards_of(source);
  if (!options.sha256.empty() && options.sha256.size() != shards.size()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} checksums are given for {} files",
                                                         options.sha256.size(), shards.size()));
  }
  const std::filesystem::path folder = models_folder();
  std::vector<PulledFile> files;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (!options.sha256.empty()) shards[i].sha256 = options.sha256[i];
    const ModelSource& shard = shards[i];
    const std::filesystem::path path = folder / shard.file;
    if (!options.again) {
      if (auto file = present(path, shard.sha256)) {
        files.push_back(std::move(*file));
        continue;
      }
    }
    DownloadOptions how = options.download;
    if (options.on_progress) {
      how.on_progress = [&](const DownloadProgress& progress) {
        options.on_progress(path, i, shards.size(), progress);
      };
    }
    const DownloadedFile fetched =
        download({.url = shard.url,
                  .hub = shard.hub,
                  .token = shard.hub ? environment("HF_TOKEN").value_or("") : "",
                  .target = path,
                  .sha256 = shard.sha256},
                 how);
    files.push_back({.path = path,
                     .bytes = fetched.bytes,
                     .sha256 = fetched.sha256,
                     .verified = fetched.verified,
                     .fetched = true});
  }
  return files;
}

}  // namespace edgerunner::hub
