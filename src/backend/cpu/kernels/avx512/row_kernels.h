#pragma once

// Which row kernel a type of weights has.

#include "backend/cpu/kernels/avx512/pair_product.h"
#include "backend/cpu/kernels/avx512/row_blocks32.h"
#include "backend/cpu/kernels/avx512/row_floats.h"
#include "backend/cpu/kernels/avx512/row_k.h"
#include "backend/cpu/kernels/row_product.h"

namespace edgerunner::cpu {
namespace {

// Null where there is none. Quantised weights have one for a single row of activations at most:
// transposing them in registers costs less for two already, and for one of some types.
inline RowMultiply row_kernel(ElementType type, ActivationFormat format) {
  const bool exact = format == ActivationFormat::f32;
  switch (type) {
    case ElementType::f32:
      return multiply_float_rows<FloatWeights::f32>;
    case ElementType::f16:
      return multiply_float_rows<FloatWeights::f16>;
    case ElementType::bf16:
      return multiply_float_rows<FloatWeights::bf16>;
    case ElementType::q8_0:
      return exact ? nullptr : multiply_by_rows<Q8_0Row, 1>;
    case ElementType::q3_k:
      return exact ? nullptr : multiply_by_rows<Q3KRow, 1>;
    case ElementType::q6_k:
      return exact ? nullptr : multiply_by_rows<Q6KRow, 1>;
    case ElementType::iq4_xs:
      return exact ? nullptr : multiply_by_rows<Iq4XsRow, 1>;
    default:
      return nullptr;
  }
}

// The kernels that a single row of activations has beside those, of whole tiles of kPairRows rows;
// takes_eight_rows_for_one() has the same types.
inline RowMultiply pair_kernel(ElementType type, ActivationFormat format) {
  if (format != ActivationFormat::q8) return nullptr;
  switch (type) {
    case ElementType::q4_0:
      return multiply_by_pairs<Q4_0Pairs>;
    case ElementType::q4_1:
      return multiply_by_pairs<Q4_1Pairs>;
    case ElementType::q5_0:
      return multiply_by_pairs<Q5_0Pairs>;
    case ElementType::q5_1:
      return multiply_by_pairs<Q5_1Pairs>;
    case ElementType::iq4_nl:
      return multiply_by_pairs<Iq4NlPairs>;
    case ElementType::mxfp4:
      return multiply_by_pairs<Mxfp4Pairs>;
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace edgerunner::cpu
