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
  using Q2K = Q2KRow;
  using Q3K = Q3KRow;
  using Q4K = Q4KRow;
  using Q5K = Q5KRow;
  using Q6K = Q6KRow;
  using Iq4Xs = Iq4XsRow;
};

// Null where there is none.
inline RowMultiply row_kernel(ElementType type, ActivationFormat format) {
  const bool exact = format == ActivationFormat::f32;
  switch (type) {
    case ElementType::f32:
      return multiply_float_rows<FloatWeights::f32>;
    case ElementType::f16:
      return exact ? multiply_float_rows<FloatWeights::f16_as_f32>
                   : multiply_float_rows<FloatWeights::f16>;
    case ElementType::bf16:
      return exact ? multiply_float_rows<FloatWeights::bf16_as_f32>
                   : multiply_float_rows<FloatWeights::bf16>;
    default:
      return exact ? nullptr : quantised_row_kernel<Avx512RowFormats>(type);
  }
}

}  // namespace
}  // namespace edgerunner::cpu
