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
};

// Null where there is none.
inline RowMultiply row_kernel(ElementType type, ActivationFormat format) {
  if (format != ActivationFormat::q8) return nullptr;
  switch (type) {
    case ElementType::q2_k:
      return multiply_by_rows<Q2KRow, kRowTokens>;
    case ElementType::q3_k:
      return multiply_by_rows<Q3KRow, kRowTokens>;
    case ElementType::q4_k:
      return multiply_by_rows<Q4KRow, kRowTokens>;
    case ElementType::q5_k:
      return multiply_by_rows<Q5KRow, kRowTokens>;
    case ElementType::q6_k:
      return multiply_by_rows<Q6KRow, kRowTokens>;
    case ElementType::iq4_xs:
      return multiply_by_rows<Iq4XsRow, kRowTokens>;
    default:
      return blocks32_row_kernel<Avx2RowFormats, kRowTokens>(type);
  }
}

}  // namespace
}  // namespace edgerunner::cpu
