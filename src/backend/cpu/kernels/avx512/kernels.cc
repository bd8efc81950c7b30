// The kernels of AVX-512 with VNNI and BF16. All but its three functions have internal linkage, and
// nothing here instantiates a template of the standard library, so that no code of this instruction
// set can stand in for another translation unit's.
#include "backend/cpu/kernels/avx512/direct_kernels.h"
#include "backend/cpu/kernels/avx512/prepare.h"
#include "backend/cpu/kernels/avx512/row_kernels.h"
#include "backend/cpu/kernels/avx512/simd.h"
#include "backend/cpu/kernels/bf16_product.h"
#include "backend/cpu/kernels/instruction_sets.h"
#include "backend/cpu/kernels/panel_kernels.h"
#include "backend/cpu/kernels/panel_product.h"

namespace edgerunner::cpu::avx512 {
namespace {

// Whole tiles of weight rows and few rows of activations; false where panels have to.
bool multiply_tiles(const RawProduct& product, std::uint32_t row_begin, std::uint32_t row_end,
                    const Scratch& scratch) {
  if (row_begin == row_end) return true;
  const RowMultiply by_pairs =
      product.tokens == 1 ? pair_kernel(product.type, product.format) : nullptr;
  if (by_pairs != nullptr && by_pairs(product, row_begin, row_end, scratch)) return true;
  const DirectMultiply directly = direct_kernel(product.type, product.format);
  return directly != nullptr && directly(product, row_begin, row_end, scratch);
}

}  // namespace

void prepare(ActivationFormat format, Refinement refinement, const float* x, std::uint32_t cols,
             std::byte* out) {
  prepare_row(format, refinement, x, cols, out);
}

void multiply(const RawProduct& product, std::uint32_t row_begin, std::uint32_t row_end,
              std::byte* scratch) {
  if (product.format == ActivationFormat::bf16) {
    return multiply_bf16<Avx512>(product, row_begin, row_end, Scratch(scratch));
  }
  if (product.tokens <= kDirectTokens) {
    const RowMultiply by_rows = row_kernel(product.type, product.format);
    if (by_rows != nullptr && by_rows(product, row_begin, row_end, Scratch(scratch))) return;
    const std::uint32_t end = row_end - (row_end - row_begin) % kRowTile;
    if (multiply_tiles(product, row_begin, end, Scratch(scratch))) row_begin = end;
    if (row_begin == row_end) return;
  }
  multiply_panels<Avx512>(product, panel_kernel<Avx512>, row_begin, row_end, Scratch(scratch));
}

void apply_gate(Epilogue epilogue, const float* s, std::uint32_t size, float* y) {
  multiply_gate<Avx512>(epilogue, s, size, y);
}

}  // namespace edgerunner::cpu::avx512
