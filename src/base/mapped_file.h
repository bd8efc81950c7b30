#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>

#include "base/descriptor.h"

namespace edgerunner {

// A file mapped read-only into memory for as long as the object lives. An empty file has no bytes.
// The bytes are the file's: whoever truncates the file while it is mapped makes the kernel end the
// process that reads past the new end, as with any mapped file.
class MappedFile {
 public:
  // Throws Error(io) that names the path where it can't be opened or isn't a regular file.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

  // Advice to the system, without effect on the contents: read the file ahead; drop its pages,
  // which come back from the file when they are next read.
  void will_need() const;
  void dont_need() const;
  // All of the file, for which there is memory, will be read again and again where it is: takes the
  // time to have it in huge pages, where the system has them (huge_pages.h).
  void will_read_often(const std::function<void(double)>& on_progress = {}) const;

 private:
  Descriptor descriptor_;
  std::span<const std::byte> bytes_;
};

}  // namespace edgerunner
