#pragma once

// The kernel of each quantised type that transposes weights in registers.

#include "backend/cpu/kernels/avx512/simd.h"
#include "backend/cpu/kernels/direct_product.h"
#include "backend/cpu/kernels/unpack_k.h"

namespace edgerunner::cpu {
namespace {

// Null where there is none.
inline DirectMultiply direct_kernel(ElementType type, ActivationFormat format) {
  using S = Avx512;
  if (format != ActivationFormat::q8) return nullptr;
  switch (type) {
    case ElementType::q4_0:
      return kDirectBlocks32<S, CodeForm::signed_codes, Q4_0Codes>;
    case ElementType::q4_1:
      return kDirectBlocks32<S, CodeForm::minimum, Q4_1Codes>;
    case ElementType::q5_0:
      return kDirectBlocks32<S, CodeForm::signed_codes, Q5_0Codes>;
    case ElementType::q5_1:
      return kDirectBlocks32<S, CodeForm::minimum, Q5_1Codes>;
    case ElementType::q8_0:
      return kDirectBlocks32<S, CodeForm::signed_codes, Q8_0Codes>;
    case ElementType::iq4_nl:
      return kDirectBlocks32<S, CodeForm::signed_codes, Iq4NlCodes>;
    case ElementType::mxfp4:
      return kDirectBlocks32<S, CodeForm::signed_codes, Mxfp4Codes>;
    case ElementType::q2_k:
      return kDirectK<S, CodeForm::half_minima, Q2KBlock>;
    case ElementType::q3_k:
      return kDirectK<S, CodeForm::signed_codes, Q3KBlock>;
    case ElementType::q4_k:
      return kDirectQ4K<S>;
    case ElementType::q5_k:
      return kDirectK<S, CodeForm::minimum, Q5KBlock>;
    case ElementType::q6_k:
      return kDirectK<S, CodeForm::half_scales, Q6KBlock>;
    case ElementType::iq4_xs:
      return kDirectK<S, CodeForm::signed_codes, Iq4XsBlock>;
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace edgerunner::cpu
