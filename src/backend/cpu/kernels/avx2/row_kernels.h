#pragma once

// Which row kernel a type of weights has.

#include "backend/cpu/kernels/avx2/row_blocks32.h"
#include "backend/cpu/kernels/avx2/row_k.h"
#include "backend/cpu/kernels/row_kernels.h"

namespace edgerunner::cpu {
namespace {

struct Avx2RowFormats {
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
  if (format != ActivationFormat::q8) return nullptr;
  const RowMultiply blocks32 = blocks32_row_kernel<Avx2RowFormats, kRowTokens>(type);
  return blocks32 != nullptr ? blocks32 : k_row_kernel<Avx2RowFormats, kRowTokens>(type);
}

}  // namespace
}  // namespace edgerunner::cpu
