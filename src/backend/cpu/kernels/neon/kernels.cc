// The kernels of NEON with the dot product instructions. All but its three functions have internal
// linkage, and nothing here instantiates a template of the standard library, so that no code of
// this instruction set can stand in for another translation unit's.
#include "backend/cpu/kernels/bf16_product.h"
#include "backend/cpu/kernels/instruction_sets.h"
#include "backend/cpu/kernels/neon/kernel_table.h"
#include "backend/cpu/kernels/neon/prepare.h"

namespace edgerunner::cpu {
namespace {

struct Dotprod {
  using Layout = FoursByRow;
  template <CodeForm kForm>
  static constexpr PanelKernel<Neon> q8_kernel(Unpack<Neon> unpack) {
    return cpu::q8_kernel<Neon, kForm>(unpack);
  }
};

}  // namespace

namespace neon {

void prepare(ActivationFormat format, Refinement refinement, const float* x, std::uint32_t cols,
             std::byte* out) {
  prepare_row(format, refinement, x, cols, out);
}

void multiply(const RawProduct& product, std::uint32_t row_begin, std::uint32_t row_end,
              std::byte* scratch) {
  if (product.format == ActivationFormat::bf16) {
    return multiply_bf16<Neon>(product, row_begin, row_end, Scratch(scratch));
  }
  multiply_panels<Neon>(product, kernel_for<Dotprod>, row_begin, row_end, Scratch(scratch));
}

void apply_gate(Epilogue epilogue, const float* s, std::uint32_t size, float* y) {
  multiply_gate<Neon>(epilogue, s, size, y);
}

}  // namespace neon
}  // namespace edgerunner::cpu
