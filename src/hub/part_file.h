#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hub/sha256.h"

namespace edgerunner::hub {

// The beginning of a file that is being fetched. It stands beside its place and is all that a
// killed run leaves: FILE.VALIDATOR.part, where VALIDATOR is the ETag or date, percent-encoded, by
// which the server can tell whether it still has the same file; FILE.part where it sent neither.
// One process at a time may hold it. Every function throws Error(io) that names the file where the
// system refuses.
class PartFile {
 public:
  // What an earlier run left of `target`, read through for its checksum; nullopt where there is
  // nothing.
  static std::optional<PartFile> find(const std::filesystem::path& target);
  // An empty part, in place of all that earlier runs left of `target`; folders are made.
  static PartFile create(const std::filesystem::path& target, const std::string& validator);

  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&& other) noexcept;
  ~PartFile();

  const std::filesystem::path& path() const { return path_; }
  const std::string& validator() const { return validator_; }
  std::uint64_t size() const { return size_; }

  void write(std::span<const std::byte> bytes);
  // The SHA-256 of the bytes so far; nothing may be written afterwards.
  std::string finish() { return sum_.finish(); }
  // Brings the bytes to the disk and gives the part the name of its target.
  void commit();
  void discard();

 private:
  PartFile(std::filesystem::path target, std::filesystem::path path, std::string validator);
  void hash_contents();

  std::filesystem::path target_;
  std::filesystem::path path_;
  std::string validator_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  Sha256 sum_;
};

// All parts that earlier runs left of `target`.
std::vector<std::filesystem::path> parts_of_file(const std::filesystem::path& target);

}  // namespace edgerunner::hub
