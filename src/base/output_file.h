#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>

#include "base/descriptor.h"

namespace edgerunner {

// A file that appears complete or not at all: it is written to PATH.part beside its place and takes
// its name at commit(). Where PATH is a link to something, its end is meant, and the link stays.
// Destroyed without commit(), it leaves nothing behind. Every function throws Error(io) that names
// the path where the system refuses, and the first where something else than a file stands there,
// which would be replaced, or somebody else is writing the same file.
class OutputFile {
 public:
  explicit OutputFile(std::filesystem::path path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  void write(std::span<const std::byte> bytes);
  std::uint64_t written() const { return written_; }
  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& part_path() const { return part_; }  // until commit()

  // Brings the bytes to the disk; nothing may be written afterwards.
  void close();
  // Closes and renames. A file that stood there is replaced.
  void commit();

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::filesystem::path path_;
  std::filesystem::path place_;  // where the links end
  std::filesystem::path part_;   // empty once there is nothing to remove
  Descriptor lock_;              // of the part, until it has its name
  std::unique_ptr<std::FILE, Closer> file_;
  std::uint64_t written_ = 0;
};

}  // namespace edgerunner
