// The kernels of AVX-512 with VNNI and BF16. All but its two functions has internal linkage, and
// nothing here instantiates a template of the standard library, so that no code of this instruction
// set can stand in for another translation unit's.
#include "backend/cpu/kernels/avx512/prepare.h"
#include "backend/cpu/kernels/avx512/simd.h"
#include "backend/cpu/kernels/avx512/unpack_blocks32.h"
#include "backend/cpu/kernels/avx512/unpack_floats.h"
#include "backend/cpu/kernels/avx512/unpack_k.h"
#include "backend/cpu/kernels/instruction_sets.h"
#include "backend/cpu/kernels/panel_product.h"

namespace edgerunner::cpu {
namespace {

constexpr auto kF32 = f32_kernel<Avx512>(unpack_f32);
constexpr auto kDequantized = f32_kernel<Avx512>(unpack_dequantized);
constexpr auto kBf16 = bf16_kernel<Avx512>(unpack_bf16);
constexpr auto kF16 = bf16_kernel<Avx512>(unpack_f16);
constexpr auto kQ4_0 = q8_kernel<Avx512, CodeForm::signed_codes>(unpack_blocks32<Q4_0Codes>);
constexpr auto kQ4_1 = q8_kernel<Avx512, CodeForm::minimum>(unpack_blocks32<Q4_1Codes>);
constexpr auto kQ5_0 = q8_kernel<Avx512, CodeForm::signed_codes>(unpack_blocks32<Q5_0Codes>);
constexpr auto kQ5_1 = q8_kernel<Avx512, CodeForm::minimum>(unpack_blocks32<Q5_1Codes>);
constexpr auto kQ8_0 = q8_kernel<Avx512, CodeForm::signed_codes>(unpack_blocks32<Q8_0Codes>);
constexpr auto kIq4Nl = q8_kernel<Avx512, CodeForm::signed_codes>(unpack_blocks32<Iq4NlCodes>);
constexpr auto kMxfp4 = q8_kernel<Avx512, CodeForm::signed_codes>(unpack_blocks32<Mxfp4Codes>);
constexpr auto kQ2K = q8_kernel<Avx512, CodeForm::half_minima>(unpack_k<Q2KBlock>);
constexpr auto kQ3K = q8_kernel<Avx512, CodeForm::signed_codes>(unpack_k<Q3KBlock>);
constexpr auto kQ4K = q8_kernel<Avx512, CodeForm::minimum>(unpack_k<Q4KBlock>);
constexpr auto kQ5K = q8_kernel<Avx512, CodeForm::minimum>(unpack_k<Q5KBlock>);
constexpr auto kQ6K = q8_kernel<Avx512, CodeForm::half_scales>(unpack_k<Q6KBlock>);
constexpr auto kIq4Xs = q8_kernel<Avx512, CodeForm::signed_codes>(unpack_k<Iq4XsBlock>);

const PanelKernel<Avx512>& kernel_for(ElementType type, ActivationFormat format) {
  if (format == ActivationFormat::f32) return type == ElementType::f32 ? kF32 : kDequantized;
  switch (type) {
    case ElementType::f16:
      return kF16;
    case ElementType::bf16:
      return kBf16;
    case ElementType::q4_0:
      return kQ4_0;
    case ElementType::q4_1:
      return kQ4_1;
    case ElementType::q5_0:
      return kQ5_0;
    case ElementType::q5_1:
      return kQ5_1;
    case ElementType::q8_0:
      return kQ8_0;
    case ElementType::iq4_nl:
      return kIq4Nl;
    case ElementType::iq4_xs:
      return kIq4Xs;
    case ElementType::mxfp4:
      return kMxfp4;
    case ElementType::q2_k:
      return kQ2K;
    case ElementType::q3_k:
      return kQ3K;
    case ElementType::q4_k:
      return kQ4K;
    case ElementType::q5_k:
      return kQ5K;
    case ElementType::q6_k:
      return kQ6K;
    default:
      break;
  }
  return kDequantized;  // unreachable: activation_format gives f32 for every other type
}

}  // namespace

namespace avx512 {

void prepare(ActivationFormat format, const float* x, std::uint32_t cols, std::byte* out) {
  prepare_row(format, x, cols, out);
}

void multiply(const RawProduct& product, std::uint32_t row_begin, std::uint32_t row_end,
              std::byte* scratch) {
  multiply_panels<Avx512>(product, kernel_for(product.type, product.format), row_begin, row_end,
                          Scratch(scratch));
}

}  // namespace avx512
}  // namespace edgerunner::cpu
