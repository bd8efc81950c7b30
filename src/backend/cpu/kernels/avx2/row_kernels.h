#pragma once

// Which row kernel a type of weights has.

#include "backend/cpu/kernels/avx2/row_blocks32.h"
#include "backend/cpu/kernels/avx2/row_k.h"
#include "backend/cpu/kernels/row_product.h"

namespace edgerunner::cpu {
namespace {

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
    case ElementType::q4_0:
      return multiply_by_rows<Q4_0Row, kRowTokens>;
    case ElementType::q4_1:
      return multiply_by_rows<Q4_1Row, kRowTokens>;
    case ElementType::q5_0:
      return multiply_by_rows<Q5_0Row, kRowTokens>;
    case ElementType::q5_1:
      return multiply_by_rows<Q5_1Row, kRowTokens>;
    case ElementType::q8_0:
      return multiply_by_rows<Q8_0Row, kRowTokens>;
    case ElementType::iq4_nl:
      return multiply_by_rows<Iq4NlRow, kRowTokens>;
    case ElementType::mxfp4:
      return multiply_by_rows<Mxfp4Row, kRowTokens>;
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace edgerunner::cpu
