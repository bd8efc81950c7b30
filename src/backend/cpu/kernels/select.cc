#include <algorithm>

#include "backend/cpu/kernels/codes.h"
#include "backend/cpu/kernels/instruction_sets.h"
#include "backend/cpu/kernels/q8_block.h"

namespace edgerunner::cpu {

ActivationFormat activation_format(ElementType weights, Precision precision) {
  if (precision == Precision::exact || weights == ElementType::f32) return ActivationFormat::f32;
  if (weights == ElementType::f16 || weights == ElementType::bf16) return ActivationFormat::bf16;
  return ActivationFormat::q8;
}

std::size_t prepared_row_bytes(ActivationFormat format, std::uint32_t cols) {
  std::size_t bytes = 0;
  switch (format) {
    case ActivationFormat::f32:
      bytes = cols * sizeof(float);
      break;
    case ActivationFormat::bf16:
      bytes = cols * sizeof(std::uint16_t);
      break;
    case ActivationFormat::q8:
      bytes = (std::size_t{cols} + kQ8Length - 1) / kQ8Length * sizeof(Q8Block);
      break;
  }
  return (bytes + 63) / 64 * 64;
}

// The largest panel: 32 rows of f32 weights, and a row as read before it is interleaved.
std::size_t multiply_scratch_bytes(std::uint32_t max_cols) {
  constexpr std::size_t kPanelRows = 32;
  const std::size_t cols = (std::size_t{max_cols} + 31) / 32 * 32;
  return kPanelRows * cols * sizeof(float) + 4096 +
         std::max(cols * sizeof(float), cols / kQ8Length * sizeof(Codes));
}

const Kernels& kernels(Isa isa) {
  switch (isa) {
    case Isa::scalar:
    case Isa::avx2:
    case Isa::avx512:
    case Isa::neon:
    case Isa::neon_i8mm:
      break;
  }
  return kScalarKernels;
}

}  // namespace edgerunner::cpu
