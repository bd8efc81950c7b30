#include "base/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/locked_file.h"
#include "edgerunner/error.h"

namespace edgerunner {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view verb, int error) {
  throw Error(ErrorCode::io, fmt::format("can't {} '{}': {}", verb, path.string(),
                                         std::generic_category().message(error)));
}

}  // namespace

OutputFile::OutputFile(std::filesystem::path path) : path_(std::move(path)), place_(path_) {
  std::error_code error;
  const std::filesystem::file_status there = std::filesystem::status(path_, error);
  if (std::filesystem::is_directory(there)) {
    throw Error(ErrorCode::io,
                fmt::format("can't write '{}': it is a directory; give the path of a file",
                            path_.string()));
  }
  // A device, a pipe or a socket would be replaced by a file.
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there)) {
    throw Error(ErrorCode::io,
                fmt::format("can't write '{}': it is not a regular file; give another path",
                            path_.string()));
  }
  if (std::filesystem::exists(there)) place_ = std::filesystem::canonical(path_, error);
  if (place_.empty()) fail(path_, "write", error.value());
  std::filesystem::path part = place_;
  part += ".part";
  lock_ = Descriptor(open_locked(part));
  if (lock_.get() < 0 && errno == EWOULDBLOCK) {
    throw Error(ErrorCode::io,
                fmt::format("'{}' is being written by another process; wait for its end, or give "
                            "another path",
                            path_.string()));
  }
  if (lock_.get() < 0) fail(path_, "write", errno);
  part_ = std::move(part);
  // What a run that was killed left there goes.
  const int written_to =
      ::ftruncate(lock_.get(), 0) == 0 ? ::fcntl(lock_.get(), F_DUPFD_CLOEXEC, 0) : -1;
  if (written_to >= 0) file_.reset(::fdopen(written_to, "wb"));
  if (!file_) fail(path_, "write", errno);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      place_(std::move(other.place_)),
      part_(std::exchange(other.part_, {})),
      lock_(std::move(other.lock_)),
      file_(std::move(other.file_)),
      written_(other.written_) {}

OutputFile::~OutputFile() {
  file_.reset();
  std::error_code ignored;
  if (!part_.empty()) std::filesystem::remove(part_, ignored);
}

void OutputFile::write(std::span<const std::byte> bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) {
    fail(path_, "write", errno);
  }
  written_ += bytes.size();
}

void OutputFile::close() {
  if (!file_) return;
  if (std::fflush(file_.get()) != 0 || ::fsync(::fileno(file_.get())) != 0) {
    fail(path_, "write", errno);
  }
  if (std::fclose(file_.release()) != 0) fail(path_, "write", errno);
}

void OutputFile::commit() {
  close();
  if (std::rename(part_.c_str(), place_.c_str()) != 0) fail(path_, "write", errno);
  part_.clear();
  lock_ = Descriptor();
}

}  // namespace edgerunner
