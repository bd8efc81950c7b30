#pragma once

// The panel kernel of each type of weights.

#include "backend/cpu/kernels/panel_dequantized.h"
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

// A type's kernels for 8-bit and for f32 activations.
template <class S>
struct QuantisedKernels {
  PanelKernel<S> q8;
  PanelKernel<S> f32;
};

template <class S, CodeForm kForm>
constexpr QuantisedKernels<S> quantised_kernels(Unpack<S> unpack) {
  return {q8_kernel<S, kForm>(unpack), dequantized_kernel<S, kForm>(unpack)};
}
template <class S, CodeForm kForm, template <class> class Codes>
constexpr QuantisedKernels<S> kBlocks32 = quantised_kernels<S, kForm>(unpack_blocks32<S, Codes>);
template <class S, CodeForm kForm, template <class> class Block>
constexpr QuantisedKernels<S> kK = quantised_kernels<S, kForm>(unpack_k<S, kForm, Block>);

// Null for types that aren't quantised.
template <class S>
const QuantisedKernels<S>* find_quantised_kernels(ElementType type) {
  switch (type) {
    case ElementType::q4_0:
      return &kBlocks32<S, CodeForm::signed_codes, Q4_0Codes>;
    case ElementType::q4_1:
      return &kBlocks32<S, CodeForm::minimum, Q4_1Codes>;
    case ElementType::q5_0:
      return &kBlocks32<S, CodeForm::signed_codes, Q5_0Codes>;
    case ElementType::q5_1:
      return &kBlocks32<S, CodeForm::minimum, Q5_1Codes>;
    case ElementType::q8_0:
      return &kBlocks32<S, CodeForm::signed_codes, Q8_0Codes>;
    case ElementType::iq4_nl:
      return &kBlocks32<S, CodeForm::signed_codes, Iq4NlCodes>;
    case ElementType::mxfp4:
      return &kBlocks32<S, CodeForm::signed_codes, Mxfp4Codes>;
    case ElementType::q2_k:
      return &kK<S, CodeForm::half_minima, Q2KBlock>;
    case ElementType::q3_k:
      return &kK<S, CodeForm::signed_codes, Q3KBlock>;
    case ElementType::q4_k:
      return &kK<S, CodeForm::minimum, Q4KBlock>;
    case ElementType::q5_k:
      return &kK<S, CodeForm::minimum, Q5KBlock>;
    case ElementType::q6_k:
      return &kK<S, CodeForm::half_scales, Q6KBlock>;
    case ElementType::iq4_xs:
      return &kK<S, CodeForm::signed_codes, Iq4XsBlock>;
    default:
      return nullptr;
  }
}

template <class S>
const PanelKernel<S>& panel_kernel(ElementType type, ActivationFormat format) {
  if (const QuantisedKernels<S>* kernels = find_quantised_kernels<S>(type)) {
    return format == ActivationFormat::f32 ? kernels->f32 : kernels->q8;
  }
  return type == ElementType::f32 ? kF32<S> : kDequantized<S>;
}

}  // namespace
}  // namespace edgerunner::cpu
