#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace edgerunner::gguf {

static_assert(std::endian::native == std::endian::little,
              "GGUF files are read in place, in little-endian order");

// What is being read, for the message where the file ends too early: "the value of key 'x'".
struct Part {
  std::string_view what;
  std::string_view name = {};  // of the key or tensor; may be empty
};
std::string to_string(const Part& part);

// Reads a file's bytes front to back and never past their end: it throws Error(invalid_file)
// instead, naming the file, the part and the offset.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string_view file)
      : bytes_(bytes), file_(file) {}

  std::size_t offset() const { return offset_; }
  std::size_t remaining() const { return bytes_.size() - offset_; }
  std::string_view file() const { return file_; }

  template <typename T>
  T number(const Part& part) {
    T value;
    std::memcpy(&value, take(sizeof(T), part).data(), sizeof(T));
    return value;
  }

  // The next `count` bytes.
  std::span<const std::byte> take(std::uint64_t count, const Part& part) {
    if (count > remaining()) fail_at_end(count, part);
    const std::span<const std::byte> taken = bytes_.subspan(offset_, count);
    offset_ += count;
    return taken;
  }

  // A string: its length in 8 bytes, then its bytes.
  std::string_view string(const Part& part) {
    const auto length = number<std::uint64_t>(part);
    const std::span<const std::byte> text = take(length, part);
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }

 private:
  [[noreturn]] void fail_at_end(std::uint64_t count, const Part& part) const;

  std::span<const std::byte> bytes_;
  std::string_view file_;
  std::size_t offset_ = 0;
};

}  // namespace edgerunner::gguf
