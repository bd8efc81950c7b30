#include "tensor/element_type.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "edgerunner/error.h"

namespace edgerunner {
namespace {

constexpr auto kTypes = std::to_array<ElementTypeTraits>({
    {ElementType::f32, "F32", 1, 4, true},
    {ElementType::f16, "F16", 1, 2, true},
    {ElementType::q4_0, "Q4_0", 32, 18, true},
    {ElementType::q4_1, "Q4_1", 32, 20, true},
    {ElementType::q5_0, "Q5_0", 32, 22, true},
    {ElementType::q5_1, "Q5_1", 32, 24, true},
    {ElementType::q8_0, "Q8_0", 32, 34, true},
    {ElementType::q8_1, "Q8_1", 32, 36, false},
    {ElementType::q2_k, "Q2_K", 256, 84, true},
    {ElementType::q3_k, "Q3_K", 256, 110, true},
    {ElementType::q4_k, "Q4_K", 256, 144, true},
    {ElementType::q5_k, "Q5_K", 256, 176, true},
    {ElementType::q6_k, "Q6_K", 256, 210, true},
    {ElementType::q8_k, "Q8_K", 256, 292, false},
    {ElementType::iq2_xxs, "IQ2_XXS", 256, 66, false},
    {ElementType::iq2_xs, "IQ2_XS", 256, 74, false},
    {ElementType::iq3_xxs, "IQ3_XXS", 256, 98, false},
    {ElementType::iq1_s, "IQ1_S", 256, 50, false},
    {ElementType::iq4_nl, "IQ4_NL", 32, 18, true},
    {ElementType::iq3_s, "IQ3_S", 256, 110, false},
    {ElementType::iq2_s, "IQ2_S", 256, 82, false},
    {ElementType::iq4_xs, "IQ4_XS", 256, 136, true},
    {ElementType::i8, "I8", 1, 1, false},
    {ElementType::i16, "I16", 1, 2, false},
    {ElementType::i32, "I32", 1, 4, false},
    {ElementType::i64, "I64", 1, 8, false},
    {ElementType::f64, "F64", 1, 8, false},
    {ElementType::iq1_m, "IQ1_M", 256, 56, false},
    {ElementType::bf16, "BF16", 1, 2, true},
    {ElementType::tq1_0, "TQ1_0", 256, 54, false},
    {ElementType::tq2_0, "TQ2_0", 256, 66, false},
    {ElementType::mxfp4, "MXFP4", 32, 17, true},
});

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::toupper(x) == std::toupper(y);
  });
}

}  // namespace

std::span<const ElementTypeTraits> element_types() { return kTypes; }

const ElementTypeTraits* find_element_type(std::uint32_t id) {
  const auto found = std::lower_bound(kTypes.begin(), kTypes.end(), id,
                                      [](const ElementTypeTraits& entry, std::uint32_t wanted) {
                                        return static_cast<std::uint32_t>(entry.type) < wanted;
                                      });
  if (found == kTypes.end() || static_cast<std::uint32_t>(found->type) != id) return nullptr;
  return &*found;
}

const ElementTypeTraits& traits(ElementType type) {
  const auto id = static_cast<std::uint32_t>(type);
  const ElementTypeTraits* const found = find_element_type(id);
  if (found == nullptr) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} is not a GGUF element type", id));
  }
  return *found;
}

std::optional<ElementType> element_type_from_name(std::string_view name) {
  for (const ElementTypeTraits& entry : kTypes) {
    if (equal_ignoring_case(entry.name, name)) return entry.type;
  }
  return std::nullopt;
}

std::size_t row_bytes(ElementType type, std::size_t elements) {
  const ElementTypeTraits& entry = traits(type);
  if (elements % entry.block_length != 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a row of {} elements can't be stored as {}: its length must be a "
                            "multiple of {}",
                            elements, entry.name, entry.block_length));
  }
  return elements / entry.block_length * entry.block_bytes;
}

}  // namespace edgerunner
