#pragma once

// The row kernel of each quantised type, of the formats that an instruction set's headers define.

#include "backend/cpu/kernels/row_product.h"

namespace edgerunner::cpu {
namespace {

using RowMultiply = bool (*)(const RawProduct& product, std::uint32_t row_begin,
                             std::uint32_t row_end, const Scratch& scratch);

// The formats by name; every instruction set has all of them.
template <class Formats>
RowMultiply quantised_row_kernel(ElementType type) {
  switch (type) {
    case ElementType::q4_0:
      return multiply_by_rows<typename Formats::Q4_0>;
    case ElementType::q4_1:
      return multiply_by_rows<typename Formats::Q4_1>;
    case ElementType::q5_0:
      return multiply_by_rows<typename Formats::Q5_0>;
    case ElementType::q5_1:
      return multiply_by_rows<typename Formats::Q5_1>;
    case ElementType::q8_0:
      return multiply_by_rows<typename Formats::Q8_0>;
    case ElementType::iq4_nl:
      return multiply_by_rows<typename Formats::Iq4Nl>;
    case ElementType::mxfp4:
      return multiply_by_rows<typename Formats::Mxfp4>;
    case ElementType::q2_k:
      return multiply_by_rows<typename Formats::Q2K>;
    case ElementType::q3_k:
      return multiply_by_rows<typename Formats::Q3K>;
    case ElementType::q4_k:
      return multiply_by_rows<typename Formats::Q4K>;
    case ElementType::q5_k:
      return multiply_by_rows<typename Formats::Q5K>;
    case ElementType::q6_k:
      return multiply_by_rows<typename Formats::Q6K>;
    case ElementType::iq4_xs:
      return multiply_by_rows<typename Formats::Iq4Xs>;
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace edgerunner::cpu
