#include "base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include "base/advise.h"
#include "base/huge_pages.h"
#include "edgerunner/error.h"

namespace edgerunner {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view verb, int error) {
  throw Error(ErrorCode::io, fmt::format("can't {} '{}': {}", verb, path.string(),
                                         std::generic_category().message(error)));
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a named pipe that has no writer must not wait for one.
  descriptor_ = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (descriptor_.get() < 0) fail(path, "open", errno);
  struct stat status {};
  if (::fstat(descriptor_.get(), &status) != 0) fail(path, "read the size of", errno);
  if (S_ISDIR(status.st_mode)) {
    throw Error(ErrorCode::io,
                fmt::format("'{}' is a directory; give the path of a file in it", path.string()));
  }
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::io, fmt::format("'{}' is not a regular file, so it can't be mapped; "
                                           "copy its contents to a file first",
                                           path.string()));
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return;
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor_.get(), 0);
  if (address == MAP_FAILED) fail(path, "map", errno);
  bytes_ = {static_cast<const std::byte*>(address), size};
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : descriptor_(std::move(other.descriptor_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  descriptor_ = std::move(other.descriptor_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::will_need() const { advise(bytes_, MADV_WILLNEED); }
void MappedFile::dont_need() const { advise(bytes_, MADV_DONTNEED); }

void MappedFile::will_read_often(const std::function<void(double)>& on_progress) const {
  if (!read_into_huge_pages(descriptor_.get(), bytes_, on_progress)) will_need();
}

}  // namespace edgerunner
