#pragma once

// The row kernels of the types whose blocks hold 32 weights, of the formats that an instruction
// set's headers define.

#include "backend/cpu/kernels/row_product.h"

namespace edgerunner::cpu {
namespace {

using RowMultiply = bool (*)(const RawProduct& product, std::uint32_t row_begin,
                             std::uint32_t row_end, const Scratch& scratch);

// `Formats` has them by name. For up to kMost rows of activations; null for other types.
template <class Formats, std::uint32_t kMost>
RowMultiply blocks32_row_kernel(ElementType type) {
  switch (type) {
    case ElementType::q4_0:
      return multiply_by_rows<typename Formats::Q4_0, kMost>;
    case ElementType::q4_1:
      return multiply_by_rows<typename Formats::Q4_1, kMost>;
    case ElementType::q5_0:
      return multiply_by_rows<typename Formats::Q5_0, kMost>;
    case ElementType::q5_1:
      return multiply_by_rows<typename Formats::Q5_1, kMost>;
    case ElementType::q8_0:
      return multiply_by_rows<typename Formats::Q8_0, kMost>;
    case ElementType::iq4_nl:
      return multiply_by_rows<typename Formats::Iq4Nl, kMost>;
    case ElementType::mxfp4:
      return multiply_by_rows<typename Formats::Mxfp4, kMost>;
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace edgerunner::cpu
