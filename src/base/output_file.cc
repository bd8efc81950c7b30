#include "base/output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include "edgerunner/error.h"

namespace edgerunner {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view verb, int error) {
  throw Error(ErrorCode::io, fmt::format("can't {} '{}': {}", verb, path.string(),
                                         std::generic_category().message(error)));
}

}  // namespace

OutputFile::OutputFile(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code ignored;
  const std::filesystem::file_status there = std::filesystem::status(path_, ignored);
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
  std::filesystem::path part = path_;
  part += ".part";
  file_.reset(std::fopen(part.c_str(), "wbe"));
  if (!file_) fail(path_, "write", errno);
  part_ = std::move(part);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      part_(std::exchange(other.part_, {})),
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
  if (std::rename(part_.c_str(), path_.c_str()) != 0) fail(path_, "write", errno);
  part_.clear();
}

}  // namespace edgerunner
