// The kernels of AMX: products of tiles where they are faster than AVX-512, and that otherwise. All
// but its three functions have internal linkage, and nothing here instantiates a template of the
// standard library, so that no code of this instruction set can stand in for another translation
// unit's.
#include "backend/cpu/kernels/amx/bf16_product.h"
#include "backend/cpu/kernels/instruction_sets.h"

namespace edgerunner::cpu::amx {

void prepare(ActivationFormat format, Refinement refinement, const float* x, std::uint32_t cols,
             std::byte* out) {
  avx512::prepare(format, refinement, x, cols, out);
}

void multiply(const RawProduct& product, std::uint32_t row_begin, std::uint32_t row_end,
              std::byte* scratch) {
  if (product.format == ActivationFormat::bf16) {
    return multiply_bf16_tiles(product, row_begin, row_end, Scratch(scratch));
  }
  avx512::multiply(product, row_begin, row_end, scratch);
}

void apply_gate(Epilogue epilogue, const float* s, std::uint32_t size, float* y) {
  avx512::apply_gate(epilogue, s, size, y);
}

}  // namespace edgerunner::cpu::amx
