// The kernels of NEON with the 8-bit matrix instructions; for its linkage see kernels.cc.
#include "backend/cpu/kernels/bf16_product.h"
#include "backend/cpu/kernels/instruction_sets.h"
#include "backend/cpu/kernels/neon/kernel_table.h"
#include "backend/cpu/kernels/neon/prepare.h"
#include "backend/cpu/kernels/neon/tile_i8mm.h"

namespace edgerunner::cpu {
namespace {

struct I8mm {
  using Layout = EightsByRowPair;
  template <CodeForm kForm>
  static constexpr PanelKernel<Neon> q8_kernel(Unpack<Neon> unpack) {
    return cpu::q8_kernel<Neon, kForm, MakeI8mm<kForm>>(unpack);
  }
};

}  // namespace

namespace neon_i8mm {

void prepare(ActivationFormat format, Refinement refinement, const float* x, std::uint32_t cols,
             std::byte* out) {
  prepare_row(format, refinement, x, cols, out);
}

void multiply(const RawProduct& product, std::uint32_t row_begin, std::uint32_t row_end,
              std::byte* scratch) {
  if (product.format == ActivationFormat::bf16) {
    return multiply_bf16<Neon>(product, row_begin, row_end, Scratch(scratch));
  }
  multiply_panels<Neon>(product, kernel_for<I8mm>, row_begin, row_end, Scratch(scratch));
}

void apply_gate(Epilogue epilogue, const float* s, std::uint32_t size, float* y) {
  multiply_gate<Neon>(epilogue, s, size, y);
}

}  // namespace neon_i8mm
}  // namespace edgerunner::cpu
