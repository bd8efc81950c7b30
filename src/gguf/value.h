#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
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

// Bytes of one number or boolean; 0 for strings and arrays, whose length varies.
std::size_t value_bytes(ValueType type);

// One metadata entry: a view into the mapped file, validated.
struct Value {
  std::string_view key;
  ValueType type;
  ValueType element_type;               // of an array, never array; else the same as `type`
  std::uint64_t count = 1;              // elements of an array
  std::span<const std::byte> bytes;     // the scalar, or the array's numbers, unaligned
  std::string_view text;                // of a string
  std::vector<std::string_view> texts;  // of an array of strings
};

// The type for messages: "u32", "array of 3 string".
std::string type_name(const Value& value);

// A number or boolean in the widest type of its kind.
using Number = std::variant<std::uint64_t, std::int64_t, double, bool>;

// A scalar (index 0), or an element of an array; nullopt for strings and past the end.
std::optional<Number> number_at(const Value& value, std::uint64_t index = 0);

}  // namespace edgerunner::gguf
