#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace edgerunner::gguf {

// Types of a metadata value; the numbers are the file format's.
enum class ValueType : std::uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};

std::string_view name(ValueType type);

// One metadata entry: a view into the mapped file, validated.
struct Value {
  std::string_view key;
  ValueType type;
  ValueType element_type;               // of an array
  std::uint64_t count = 1;              // elements of an array
  std::span<const std::byte> bytes;     // the scalar, or the array's numbers, unaligned
  std::string_view text;                // of a string
  std::vector<std::string_view> texts;  // of an array of strings
};

}  // namespace edgerunner::gguf
