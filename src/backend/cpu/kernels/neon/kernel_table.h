#pragma once

// The kernel of each type of weights, over the arithmetic A of an instruction set:
//   A::Layout               how codes stand in a panel
//   A::q8_kernel<F>(unpack) a kernel of tiles for CodeForm F

#include "backend/cpu/kernels/neon/formats.h"
#include "backend/cpu/kernels/neon/simd.h"
#include "backend/cpu/kernels/neon/unpack_codes.h"
#include "backend/cpu/kernels/neon/unpack_floats.h"
#include "backend/cpu/kernels/panel_product.h"

namespace edgerunner::cpu {
namespace {

constexpr auto kF32 = f32_kernel<Neon>(unpack_f32);
constexpr auto kDequantized = f32_kernel<Neon>(unpack_dequantized);

template <class A, class Format>
constexpr auto kQ8 = A::template q8_kernel<Format::kForm>(unpack<Format, typename A::Layout>);

template <class A>
const PanelKernel<Neon>& kernel_for(ElementType type, ActivationFormat format) {
  if (format == ActivationFormat::f32) return type == ElementType::f32 ? kF32 : kDequantized;
  switch (type) {
    case ElementType::q4_0:
      return kQ8<A, Q4_0Format>;
    case ElementType::q4_1:
      return kQ8<A, Q4_1Format>;
    case ElementType::q5_0:
      return kQ8<A, Q5_0Format>;
    case ElementType::q5_1:
      return kQ8<A, Q5_1Format>;
    case ElementType::q8_0:
      return kQ8<A, Q8_0Format>;
    case ElementType::iq4_nl:
      return kQ8<A, Iq4NlFormat>;
    case ElementType::iq4_xs:
      return kQ8<A, Iq4XsFormat>;
    case ElementType::mxfp4:
      return kQ8<A, Mxfp4Format>;
    case ElementType::q2_k:
      return kQ8<A, Q2KFormat>;
    case ElementType::q3_k:
      return kQ8<A, Q3KFormat>;
    case ElementType::q4_k:
      return kQ8<A, Q4KFormat>;
    case ElementType::q5_k:
      return kQ8<A, Q5KFormat>;
    case ElementType::q6_k:
      return kQ8<A, Q6KFormat>;
    default:
      break;
  }
  return kDequantized;  // other types have f32 activations, or bf16 and kernels of their own
}

}  // namespace
}  // namespace edgerunner::cpu
