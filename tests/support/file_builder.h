#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/value.h"

namespace edgerunner::test {

// Puts a GGUF file together byte by byte, lies included: nothing is checked, and each count, type
// and offset is what the test says.
class FileBuilder {
 public:
  template <typename T>
  FileBuilder& number(T value) {
    return append(std::as_bytes(std::span(&value, 1)));
  }
  FileBuilder& u32(std::uint32_t value) { return number(value); }
  FileBuilder& u64(std::uint64_t value) { return number(value); }
  FileBuilder& raw(std::string_view text) { return append(std::as_bytes(std::span(text))); }
  FileBuilder& string(std::string_view text) { return u64(text.size()).raw(text); }

  FileBuilder& header(std::uint64_t tensors, std::uint64_t keys, std::uint32_t version = 3) {
    return raw("GGUF").u32(version).u64(tensors).u64(keys);
  }
  FileBuilder& key(std::string_view name, gguf::ValueType type) {
    return string(name).u32(static_cast<std::uint32_t>(type));
  }
  FileBuilder& array(std::string_view name, gguf::ValueType element, std::uint64_t count) {
    return key(name, gguf::ValueType::array).u32(static_cast<std::uint32_t>(element)).u64(count);
  }
  FileBuilder& text_key(std::string_view name, std::string_view text) {
    return key(name, gguf::ValueType::string).string(text);
  }
  FileBuilder& u32_key(std::string_view name, std::uint32_t value) {
    return key(name, gguf::ValueType::u32).u32(value);
  }
  FileBuilder& tensor(std::string_view name, const std::vector<std::uint64_t>& shape,
                      std::uint32_t type, std::uint64_t offset) {
    string(name).u32(static_cast<std::uint32_t>(shape.size()));
    for (const std::uint64_t dimension : shape) u64(dimension);
    return u32(type).u64(offset);
  }
  FileBuilder& pad(std::size_t alignment = 32);
  FileBuilder& data(std::size_t count);
  FileBuilder& append(std::span<const std::byte> bytes);

  std::size_t size() const { return bytes_.size(); }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace edgerunner::test
