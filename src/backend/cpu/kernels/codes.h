#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/q8_block.h"
#include "tensor/element_type.h"

namespace edgerunner::cpu {

// How the weights of a 32-block stand as unsigned 8-bit codes c, and what a product does with them.
// In all forms the integer sums are exact, and the float operations on an output's accumulator are
// those given here, in this order, block after block. `dot` is the sum of weight integers times
// Q8Block::q over the block, x the Q8Block.
enum class CodeForm : std::uint8_t {
  // w = scale * (c - 128).       acc = fma(x.scale, scale * dot, acc)
  signed_codes,
  // w = scale * c + minimum.     acc = fma(x.scale, scale * dot, acc)
  //                              acc = fma(x.scaled_sum, minimum, acc)
  minimum,
  // w = scale[h] * (c - 128) in half h.
  //                              t = scale[0] * dot[0], t = fma(scale[1], dot[1], t)
  //                              acc = fma(x.scale, t, acc)
  half_scales,
  // w = scale * c + minimum * minimum_code[h] in half h.
  //                              t = scale * dot
  //                              t = fma(minimum, sum over h of minimum_code[h] * half_sum[h], t)
  //                              acc = fma(x.scale, t, acc)
  half_minima,
};

// 32 consecutive weights of a row in integer form.
struct Codes {
  std::uint8_t code[32];
  float scale[2];  // of each half; equal except in half_scales
  float minimum;
  std::int16_t minimum_code[2];
};

// The form of a quantised type, the same in every kernel.
CodeForm code_form(ElementType type);

// Codes of the `count` 32-blocks from `first` of a row that begins at `row`. The portable way, used
// where an instruction set has none of its own.
void read_codes(ElementType type, const std::uint8_t* row, std::uint32_t first, std::uint32_t count,
                Codes* out);

// Columns [first, first + count) of a row, as dequantize() has them; for callers that must not
// instantiate library templates.
void dequantize_columns(ElementType type, const std::uint8_t* row, std::uint32_t first,
                        std::uint32_t count, float* out);

}  // namespace edgerunner::cpu
