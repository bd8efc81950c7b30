#include "hub/part_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/locked_file.h"
#include "edgerunner/error.h"

namespace edgerunner::hub {
namespace {

constexpr std::string_view kEnd = ".part";
// A name may have 255 bytes; a validator that leaves no room for the file's own is done without.
constexpr std::size_t kLongestValidator = 120;

[[noreturn]] void fail(std::string_view verb, const std::filesystem::path& path, int error) {
  const std::string_view advice =
      error == ENOSPC || error == EDQUOT ? "; make room, and run the same command again" : "";
  throw Error(ErrorCode::io, fmt::format("can't {} '{}': {}{}", verb, path.string(),
                                         std::generic_category().message(error), advice));
}

bool is_plain(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

std::string encoded(std::string_view text) {
  std::string name;
  for (const char c : text) {
    name += is_plain(c) ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return name;
}

// What encoded() makes, undone; nullopt for what it doesn't make.
std::optional<std::string> decoded(std::string_view name) {
  std::string text;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (is_plain(name[i])) {
      text += name[i];
      continue;
    }
    unsigned value = 0;
    if (name[i] != '%' || i + 2 >= name.size()) return std::nullopt;
    const char* const end = name.data() + i + 3;
    if (std::from_chars(end - 2, end, value, 16).ptr != end) return std::nullopt;
    text += static_cast<char>(value);
    i += 2;
  }
  return text;
}

// The validator in the name of a part of `target`; nullopt for another file's name.
std::optional<std::string> validator_in(std::string_view name, std::string_view target) {
  if (!name.starts_with(target) || !name.ends_with(kEnd)) return std::nullopt;
  name.remove_prefix(target.size());
  if (name == kEnd) return "";
  if (name.size() <= kEnd.size() || name.front() != '.') return std::nullopt;
  return decoded(name.substr(1, name.size() - 1 - kEnd.size()));
}

}  // namespace

std::vector<std::filesystem::path> parts_of_file(const std::filesystem::path& target) {
  std::vector<std::filesystem::path> parts;
  std::error_code none;  // no folder: no parts
  for (const auto& entry : std::filesystem::directory_iterator(target.parent_path(), none)) {
    if (validator_in(entry.path().filename().string(), target.filename().string())) {
      parts.push_back(entry.path());
    }
  }
  return parts;
}

PartFile::PartFile(std::filesystem::path target, std::filesystem::path path, std::string validator)
    : target_(std::move(target)), path_(std::move(path)), validator_(std::move(validator)) {
  descriptor_ = open_locked(path_);
  if (descriptor_ >= 0) return;
  if (errno != EWOULDBLOCK) fail("write", path_, errno);
  throw Error(
      ErrorCode::io,
      fmt::format("'{}' is being fetched by another process; wait for its end", target_.string()));
}

PartFile::PartFile(PartFile&& other) noexcept
    : target_(std::move(other.target_)),
      path_(std::move(other.path_)),
      validator_(std::move(other.validator_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      sum_(std::move(other.sum_)) {}

PartFile& PartFile::operator=(PartFile&& other) noexcept {
  if (this != &other) {
    if (descriptor_ >= 0) ::close(descriptor_);
    target_ = std::move(other.target_);
    path_ = std::move(other.path_);
    validator_ = std::move(other.validator_);
    descriptor_ = std::exchange(other.descriptor_, -1);
    size_ = other.size_;
    sum_ = std::move(other.sum_);
  }
  return *this;
}

PartFile::~PartFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::optional<PartFile> PartFile::find(const std::filesystem::path& target) {
  for (const std::filesystem::path& path : parts_of_file(target)) {
    auto validator = validator_in(path.filename().string(), target.filename().string());
    PartFile part(target, path, std::move(*validator));
    part.hash_contents();
    if (part.size() > 0) return part;
  }
  return std::nullopt;
}

PartFile PartFile::create(const std::filesystem::path& target, const std::string& validator) {
  std::error_code error;
  std::filesystem::create_directories(target.parent_path(), error);
  if (error) fail("make the folder", target.parent_path(), error.value());
  std::filesystem::path path = target;
  const std::string name = encoded(validator);
  const bool fits = !name.empty() && name.size() <= kLongestValidator;
  if (fits) path += "." + name;
  path += kEnd;
  PartFile part(target, path, fits ? validator : "");
  if (::ftruncate(part.descriptor_, 0) != 0) fail("write", path, errno);
  for (const std::filesystem::path& other : parts_of_file(target)) {
    if (other != path) std::filesystem::remove(other, error);
  }
  return part;
}

void PartFile::hash_contents() {
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  while (true) {
    const ssize_t count = ::read(descriptor_, buffer.data(), buffer.size());
    if (count == 0) return;
    if (count < 0) {
      if (errno == EINTR) continue;
      fail("read", path_, errno);
    }
    sum_.update(std::span(buffer).first(static_cast<std::size_t>(count)));
    size_ += static_cast<std::uint64_t>(count);
  }
}

void PartFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      fail("write", path_, errno);
    }
    const auto written = bytes.first(static_cast<std::size_t>(count));
    sum_.update(written);
    size_ += written.size();
    bytes = bytes.subspan(written.size());
  }
}

void PartFile::commit() {
  if (::fsync(descriptor_) != 0) fail("write", path_, errno);
  if (std::rename(path_.c_str(), target_.c_str()) != 0) fail("rename", path_, errno);
  ::close(std::exchange(descriptor_, -1));
}

void PartFile::discard() {
  std::error_code error;
  std::filesystem::remove(path_, error);
  ::close(std::exchange(descriptor_, -1));
}

}  // namespace edgerunner::hub
