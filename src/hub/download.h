#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

namespace edgerunner::hub {

struct DownloadRequest {
  std::string url;
  bool hub = false;   // the server states the SHA-256 of large files; `token` is for it
  std::string token;  // empty: none
  std::filesystem::path target;
  std::string sha256;  // empty: what the hub states, where it does
};

struct DownloadProgress {
  std::uint64_t received = 0;  // of the file, what earlier runs fetched included
  std::optional<std::uint64_t> total;
};

struct DownloadOptions {
  // Tries in a row that may fail without a byte gained. The first is followed by the pause, each
  // further one by twice the pause before it.
  int tries = 6;
  std::chrono::milliseconds pause{1000};
  std::function<void(const DownloadProgress&)> on_progress;
  std::stop_token stop;
};

struct DownloadedFile {
  std::uint64_t bytes = 0;
  std::string sha256;
  bool verified = false;  // against a checksum known from elsewhere, not only counted and read
};

// Fetches a GGUF file to `target`, which appears complete and checked or not at all. What a run
// leaves (PartFile) the next goes on from, if the server still has the same file. Throws Error(io)
// for what the server or the system refuses, Error(invalid_file) for what isn't the file that was
// wanted, Error(cancelled) when stopped.
DownloadedFile download(const DownloadRequest& request, const DownloadOptions& options);

}  // namespace edgerunner::hub
