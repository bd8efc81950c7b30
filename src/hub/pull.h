#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "hub/download.h"
#include "hub/model_source.h"

namespace edgerunner::hub {

struct PullOptions {
  std::vector<std::string> sha256;  // of each file, in order; empty: what is known of them
  bool again = false;               // also what is there already
  // Of the file `index` (from 0) of `count`.
  std::function<void(const std::filesystem::path& file, std::size_t index, std::size_t count,
                     const DownloadProgress&)>
      on_progress;
  DownloadOptions download;  // but its on_progress
};

struct PulledFile {
  std::filesystem::path path;
  std::uint64_t bytes = 0;
  std::string sha256;     // empty for a file that was there and has no known checksum
  bool verified = false;  // against that
  bool fetched = false;   // false: it was there
};

// Fetches a model, all shards of a split one, into models_folder(). A file that is there already is
// kept, if it has the checksum that is known. Throws as download() does; Error(invalid_argument)
// where the checksums given aren't as many as the files.
std::vector<PulledFile> pull(const ModelSource& source, const PullOptions& options);

}  // namespace edgerunner::hub
