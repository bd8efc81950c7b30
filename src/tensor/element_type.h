#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace edgerunner {

// Element types of a GGUF tensor; the numbers are the file format's. Quantised types store blocks
// of `block_length` consecutive elements of a row in `block_bytes` bytes.
enum class ElementType : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q8_1 = 9,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  q8_k = 15,
  iq2_xxs = 16,
  iq2_xs = 17,
  iq3_xxs = 18,
  iq1_s = 19,
  iq4_nl = 20,
  iq3_s = 21,
  iq2_s = 22,
  iq4_xs = 23,
  i8 = 24,
  i16 = 25,
  i32 = 26,
  i64 = 27,
  f64 = 28,
  iq1_m = 29,
  bf16 = 30,
  tq1_0 = 34,
  tq2_0 = 35,
  mxfp4 = 39,
};

struct ElementTypeTraits {
  ElementType type;
  std::string_view name;       // as the field writes it: "Q4_K"
  std::uint32_t block_length;  // elements a block
  std::uint32_t block_bytes;   // bytes a block
  bool supported;              // EdgeRunner computes with it; others are only named in errors
};

// Every element type that GGUF defines, in order of its number.
std::span<const ElementTypeTraits> element_types();

// The traits of a type, or nullptr where the number is not a GGUF element type.
const ElementTypeTraits* find_element_type(std::uint32_t id);
const ElementTypeTraits& traits(ElementType type);

// By name, without regard to case ("q4_k", "Q4_K").
std::optional<ElementType> element_type_from_name(std::string_view name);

// Bytes of a row of `elements` elements; `elements` must be a multiple of the block length.
std::size_t row_bytes(ElementType type, std::size_t elements);

}  // namespace edgerunner
