#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/matmul.h"

namespace edgerunner::cpu {

// A product in plain pointers, so that the translation units of an instruction set need no code of
// the standard library's templates: the linker could take their copy for everybody's.
struct RawProduct {
  ElementType type;
  const std::uint8_t* weights;  // [rows] of row_bytes each
  std::size_t row_bytes;
  std::uint32_t rows;
  std::uint32_t cols;
  const float* bias;  // [rows], or null
  ActivationFormat format;
  const std::byte* x;  // [tokens, x_stride]
  std::size_t x_stride;
  std::uint32_t tokens;
  float* out;  // [tokens, out_stride]
  std::size_t out_stride;
  Epilogue epilogue;
  // Where given, the product whose outputs the epilogue takes for y, of the same x; then `out` is
  // written alone. Only where `tokens` exceeds what select.cc gives for the instruction set.
  const RawProduct* gate;
  std::uint64_t operand;
  const std::uint8_t* then;  // or null

  // What a thread reads after the rows below row_end.
  const std::uint8_t* after(std::uint32_t row_end) const {
    return then != nullptr ? then : weights + row_end * row_bytes;
  }
};

// Whether AVX-512 multiplies a single row of activations with weights of a quantised type as it
// does several, by transposing the weights in registers.
constexpr bool transposes_for_one_row(ElementType type) {
  return type == ElementType::q2_k || type == ElementType::q4_k || type == ElementType::q5_k;
}

// Whether it multiplies a single row of activations with blocks of eight weight rows at a time.
constexpr bool takes_eight_rows_for_one(ElementType type) {
  return type == ElementType::q4_0 || type == ElementType::q4_1 || type == ElementType::q5_0 ||
         type == ElementType::q5_1 || type == ElementType::iq4_nl || type == ElementType::mxfp4;
}

// What each instruction set defines, in a translation unit of its own; the meaning is that of
// Kernels::prepare, Kernels::multiply and Kernels::apply_gate.
#define EDGERUNNER_KERNELS_OF(isa)                                                                 \
  namespace isa {                                                                                  \
  void prepare(ActivationFormat format, Refinement refinement, const float* x, std::uint32_t cols, \
               std::byte* out);                                                                    \
  void multiply(const RawProduct& product, std::uint32_t row_begin, std::uint32_t row_end,         \
                std::byte* scratch);                                                               \
  void apply_gate(Epilogue epilogue, const float* s, std::uint32_t size, float* y);                \
  }
EDGERUNNER_KERNELS_OF(scalar)
EDGERUNNER_KERNELS_OF(avx2)
EDGERUNNER_KERNELS_OF(avx512)
EDGERUNNER_KERNELS_OF(amx)
EDGERUNNER_KERNELS_OF(neon)
EDGERUNNER_KERNELS_OF(neon_i8mm)
#undef EDGERUNNER_KERNELS_OF

}  // namespace edgerunner::cpu
