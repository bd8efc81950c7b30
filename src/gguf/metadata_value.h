#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <variant>
#include <vector>

#include "gguf/value.h"

namespace edgerunner::gguf {

// A metadata value that owns its contents, of any type that a file can hold.
using MetadataValue =
    std::variant<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t,
                 std::int32_t, float, bool, std::string, std::uint64_t, std::int64_t, double,
                 std::vector<std::uint8_t>, std::vector<std::int8_t>, std::vector<std::uint16_t>,
                 std::vector<std::int16_t>, std::vector<std::uint32_t>, std::vector<std::int32_t>,
                 std::vector<float>, std::vector<bool>, std::vector<std::string>,
                 std::vector<std::uint64_t>, std::vector<std::int64_t>, std::vector<double>>;

// Appends a key and its value as a file stores them.
void append_entry(std::vector<std::byte>& out, std::string_view key, const MetadataValue& value);
void append_entry(std::vector<std::byte>& out, const Value& value);

// Appends a number's bytes, and a string with its length before it.
template <typename T>
void append_number(std::vector<std::byte>& out, T number) {
  out.resize(out.size() + sizeof(T));
  std::memcpy(out.data() + out.size() - sizeof(T), &number, sizeof(T));
}
void append_string(std::vector<std::byte>& out, std::string_view text);

}  // namespace edgerunner::gguf
