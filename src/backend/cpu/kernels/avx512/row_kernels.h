#pragma once

// The row kernel of each type of weights.

#include "backend/cpu/kernels/avx512/row_blocks32.h"
#include "backend/cpu/kernels/avx512/row_floats.h"
#include "backend/cpu/kernels/avx512/row_k.h"
#include "backend/cpu/kernels/row_product.h"

namespace edgerunner::cpu {
namespace {

using RowMultiply = bool (*)(const RawProduct& product, std::uint32_t row_begin,
                             std::uint32_t row_end, const Scratch& scratch);

// Null where there is none.
inline RowMultiply row_kernel(ElementType type, ActivationFormat format) {
  if (format == ActivationFormat::f32) {
    switch (type) {
      case ElementType::f32:
        return multiply_float_rows<FloatWeights::f32>;
      case ElementType::f16:
        return multiply_float_rows<FloatWeights::f16_as_f32>;
      case ElementType::bf16:
        return multiply_float_rows<FloatWeights::bf16_as_f32>;
      default:
        return nullptr;
    }
  }
  switch (type) {
    case ElementType::f16:
      return multiply_float_rows<FloatWeights::f16>;
    case ElementType::bf16:
      return multiply_float_rows<FloatWeights::bf16>;
    case ElementType::q4_0:
      return multiply_by_rows<Q4_0Row>;
    case ElementType::q4_1:
      return multiply_by_rows<Q4_1Row>;
    case ElementType::q5_0:
      return multiply_by_rows<Q5_0Row>;
    case ElementType::q5_1:
      return multiply_by_rows<Q5_1Row>;
    case ElementType::q8_0:
      return multiply_by_rows<Q8_0Row>;
    case ElementType::iq4_nl:
      return multiply_by_rows<Iq4NlRow>;
    case ElementType::mxfp4:
      return multiply_by_rows<Mxfp4Row>;
    case ElementType::q2_k:
      return multiply_by_rows<Q2KRow>;
    case ElementType::q3_k:
      return multiply_by_rows<Q3KRow>;
    case ElementType::q4_k:
      return multiply_by_rows<Q4KRow>;
    case ElementType::q5_k:
      return multiply_by_rows<Q5KRow>;
    case ElementType::q6_k:
      return multiply_by_rows<Q6KRow>;
    case ElementType::iq4_xs:
      return multiply_by_rows<Iq4XsRow>;
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace edgerunner::cpu
