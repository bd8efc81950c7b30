#pragma once

// Which row kernel a type of weights has.

#include "backend/cpu/kernels/avx512/row_blocks32.h"
#include "backend/cpu/kernels/avx512/row_floats.h"
#include "backend/cpu/kernels/avx512/row_k.h"
#include "backend/cpu/kernels/row_kernels.h"

namespace edgerunner::cpu {
namespace {

struct Avx512RowFormats {
  using Q4_0 = Q4_0Row;
  using Q4_1 = Q4_1Row;
  using Q5_0 = Q5_0Row;
  using Q5_1 = Q5_1Row;
  using Q8_0 = Q8_0Row;
  using Iq4Nl = Iq4NlRow;
  using Mxfp4 = Mxfp4Row;
};

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
    case ElementType::q3_k:
      return exact ? nullptr : multiply_by_rows<Q3KRow, 1>;
    case ElementType::q6_k:
      return exact ? nullptr : multiply_by_rows<Q6KRow, 1>;
    case ElementType::iq4_xs:
      return exact ? nullptr : multiply_by_rows<Iq4XsRow, 1>;
    default:
      return exact ? nullptr : blocks32_row_kernel<Avx512RowFormats, 1>(type);
  }
}

}  // namespace
}  // namespace edgerunner::cpu
