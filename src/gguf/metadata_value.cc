#include "gguf/metadata_value.h"

#include <span>
#include <type_traits>

namespace edgerunner::gguf {
namespace {

template <typename T>
constexpr ValueType type_of() {
  if constexpr (std::is_same_v<T, std::uint8_t>) return ValueType::u8;
  if constexpr (std::is_same_v<T, std::int8_t>) return ValueType::i8;
  if constexpr (std::is_same_v<T, std::uint16_t>) return ValueType::u16;
  if constexpr (std::is_same_v<T, std::int16_t>) return ValueType::i16;
  if constexpr (std::is_same_v<T, std::uint32_t>) return ValueType::u32;
  if constexpr (std::is_same_v<T, std::int32_t>) return ValueType::i32;
  if constexpr (std::is_same_v<T, float>) return ValueType::f32;
  if constexpr (std::is_same_v<T, bool>) return ValueType::boolean;
  if constexpr (std::is_same_v<T, std::string>) return ValueType::string;
  if constexpr (std::is_same_v<T, std::uint64_t>) return ValueType::u64;
  if constexpr (std::is_same_v<T, std::int64_t>) return ValueType::i64;
  if constexpr (std::is_same_v<T, double>) return ValueType::f64;
}

void append_type(std::vector<std::byte>& out, ValueType type) {
  append_number(out, static_cast<std::uint32_t>(type));
}

void append_bytes(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

template <typename T>
void append_element(std::vector<std::byte>& out, const T& element) {
  if constexpr (std::is_same_v<T, std::string>) {
    append_string(out, element);
  } else if constexpr (std::is_same_v<T, bool>) {
    append_number(out, std::uint8_t{element});
  } else {
    append_number(out, element);
  }
}

template <typename T>
void append_value(std::vector<std::byte>& out, const T& scalar) {
  append_type(out, type_of<T>());
  append_element(out, scalar);
}

template <typename T>
void append_value(std::vector<std::byte>& out, const std::vector<T>& array) {
  append_type(out, ValueType::array);
  append_type(out, type_of<T>());
  append_number(out, std::uint64_t{array.size()});
  for (const T& element : array) append_element(out, element);
}

}  // namespace

void append_string(std::vector<std::byte>& out, std::string_view text) {
  append_number(out, std::uint64_t{text.size()});
  append_bytes(out, std::as_bytes(std::span(text)));
}

void append_entry(std::vector<std::byte>& out, std::string_view key, const MetadataValue& value) {
  append_string(out, key);
  std::visit([&](const auto& held) { append_value(out, held); }, value);
}

void append_entry(std::vector<std::byte>& out, const Value& value) {
  append_string(out, value.key);
  append_type(out, value.type);
  if (value.type == ValueType::string) return append_string(out, value.text);
  if (value.type == ValueType::array) {
    append_type(out, value.element_type);
    append_number(out, value.count);
    for (const std::string_view text : value.texts) append_string(out, text);
  }
  append_bytes(out, value.bytes);
}

}  // namespace edgerunner::gguf
