#pragma once

// The panel kernel of each type of weights.

#include "backend/cpu/kernels/panel_kernel.h"
#include "backend/cpu/kernels/unpack_blocks32.h"
#include "backend/cpu/kernels/unpack_floats.h"
#include "backend/cpu/kernels/unpack_k.h"

namespace edgerunner::cpu {
namespace {

template <class S>
constexpr PanelKernel<S> kF32 = f32_kernel<S>(unpack_f32<S>);
template <class S>
constexpr PanelKernel<S> kDequantized = f32_kernel<S>(unpack_dequantized<S>);
template <class S>
constexpr PanelKernel<S> kBf16 = bf16_kernel<S>(unpack_bf16<S>);
template <class S>
constexpr PanelKernel<S> kF16 = bf16_kernel<S>(unpack_f16<S>);

template <class S, CodeForm kForm, template <class> class Codes>
constexpr PanelKernel<S> kBlocks32 = q8_kernel<S, kForm>(unpack_blocks32<S, Codes>);
template <class S, CodeForm kForm, template <class> class Block>
constexpr PanelKernel<S> kK = q8_kernel<S, kForm>(unpack_k<S, Block>);

template <class S>
const PanelKernel<S>& panel_kernel(ElementType type, ActivationFormat format) {
  if (format == ActivationFormat::f32) return type == ElementType::f32 ? kF32<S> : kDequantized<S>;
  switch (type) {
    case ElementType::f16:
      return kF16<S>;
    case ElementType::bf16:
      return kBf16<S>;
    case ElementType::q4_0:
      return kBlocks32<S, CodeForm::signed_codes, Q4_0Codes>;
    case ElementType::q4_1:
      return kBlocks32<S, CodeForm::minimum, Q4_1Codes>;
    case ElementType::q5_0:
      return kBlocks32<S, CodeForm::signed_codes, Q5_0Codes>;
    case ElementType::q5_1:
      return kBlocks32<S, CodeForm::minimum, Q5_1Codes>;
    case ElementType::q8_0:
      return kBlocks32<S, CodeForm::signed_codes, Q8_0Codes>;
    case ElementType::iq4_nl:
      return kBlocks32<S, CodeForm::signed_codes, Iq4NlCodes>;
    case ElementType::mxfp4:
      return kBlocks32<S, CodeForm::signed_codes, Mxfp4Codes>;
    case ElementType::q2_k:
      return kK<S, CodeForm::half_minima, Q2KBlock>;
    case ElementType::q3_k:
      return kK<S, CodeForm::signed_codes, Q3KBlock>;
    case ElementType::q4_k:
      return kK<S, CodeForm::minimum, Q4KBlock>;
    case ElementType::q5_k:
      return kK<S, CodeForm::minimum, Q5KBlock>;
    case ElementType::q6_k:
      return kK<S, CodeForm::half_scales, Q6KBlock>;
    case ElementType::iq4_xs:
      return kK<S, CodeForm::signed_codes, Iq4XsBlock>;
    default:
      break;
  }
  return kDequantized<S>;  // no other type has a format but f32
}

}  // namespace
}  // namespace edgerunner::cpu
