#include "gguf/value.h"

#include <fmt/format.h>

#include <cstring>

namespace edgerunner::gguf {
namespace {

template <typename T>
T load(const Value& value, std::uint64_t index) {
  T number;
  std::memcpy(&number, value.bytes.data() + index * sizeof(T), sizeof(T));
  return number;
}

}  // namespace

std::string_view name(ValueType type) {
  switch (type) {
    case ValueType::u8:
      return "u8";
    case ValueType::i8:
      return "i8";
    case ValueType::u16:
      return "u16";
    case ValueType::i16:
      return "i16";
    case ValueType::u32:
      return "u32";
    case ValueType::i32:
      return "i32";
    case ValueType::f32:
      return "f32";
    case ValueType::boolean:
      return "boolean";
    case ValueType::string:
      return "string";
    case ValueType::array:
      return "array";
    case ValueType::u64:
      return "u64";
    case ValueType::i64:
      return "i64";
    case ValueType::f64:
      return "f64";
  }
  return "unknown";
}

std::size_t value_bytes(ValueType type) {
  switch (type) {
    case ValueType::u8:
    case ValueType::i8:
    case ValueType::boolean:
      return 1;
    case ValueType::u16:
    case ValueType::i16:
      return 2;
    case ValueType::u32:
    case ValueType::i32:
    case ValueType::f32:
      return 4;
    case ValueType::u64:
    case ValueType::i64:
    case ValueType::f64:
      return 8;
    case ValueType::string:
    case ValueType::array:
      break;
  }
  return 0;
}

std::string type_name(const Value& value) {
  if (value.type != ValueType::array) return std::string(name(value.type));
  return fmt::format("array of {} {}", value.count, name(value.element_type));
}

std::optional<Number> number_at(const Value& value, std::uint64_t index) {
  if (index >= value.count) return std::nullopt;
  switch (value.type == ValueType::array ? value.element_type : value.type) {
    case ValueType::u8:
      return std::uint64_t{load<std::uint8_t>(value, index)};
    case ValueType::i8:
      return std::int64_t{load<std::int8_t>(value, index)};
    case ValueType::u16:
      return std::uint64_t{load<std::uint16_t>(value, index)};
    case ValueType::i16:
      return std::int64_t{load<std::int16_t>(value, index)};
    case ValueType::u32:
      return std::uint64_t{load<std::uint32_t>(value, index)};
    case ValueType::i32:
      return std::int64_t{load<std::int32_t>(value, index)};
    case ValueType::f32:
      return double{load<float>(value, index)};
    case ValueType::boolean:
      return load<std::uint8_t>(value, index) != 0;
    case ValueType::u64:
      return load<std::uint64_t>(value, index);
    case ValueType::i64:
      return load<std::int64_t>(value, index);
    case ValueType::f64:
      return load<double>(value, index);
    case ValueType::string:
    case ValueType::array:
      break;
  }
  return std::nullopt;
}

}  // namespace edgerunner::gguf
