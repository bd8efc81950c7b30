#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "arch/weights.h"
#include "base/cpu_features.h"
#include "edgerunner/types.h"

namespace edgerunner::cpu {

// Matrix products y = W x on the mapped blocks of W, per instruction set. Every output is a sum
// over its weight row, in f32, by fused multiply-add, in the same order in every kernel of an
// instruction set: prefill, decode and any batch give the same bits. So do all instruction sets,
// but for bf16 on amx.
//   f32:  weights as dequantize() has them; element after element.
//   bf16: F16 weights rounded to bfloat16; eight sums side by side, of which sum l takes pairs l,
//         l + 8, ... of elements, pair after pair, of each the second first, as VDPBF16PS does.
//         Then sums l and l + 4 are added, l and l + 2, and the last two. Subnormal activations
//         count as zero; so do BF16 weights and sums for that instruction alone, so that of
//         outputs near 1e-30 the bits may differ between instruction sets.
//         On amx, whose tiles can't keep that order, steps of 32 columns, the last padded with
//         zeros, as TDPBF16PS has them: of a step's 16 pairs the first are summed from zero on,
//         pair after pair, and the second apart from them; the two are added, then the result to
//         the sum. Subnormal operands and results count as zero.
//   q8:   32-block after 32-block. The integers of a block are summed exactly; what becomes of the
//         sum stands at CodeForm in kernels/codes.h. The second terms of a row's blocks
//         (kernels/q8_block.h), in ascending order, are products of the same kind in a sum of their
//         own that begins at zero; it is added to the first, even where the row has none.
// The bias is added to the sum, and the epilogue applied last.

// How a row of activations is laid out for a product.
enum class ActivationFormat : std::uint8_t {
  f32,   // as it is
  bf16,  // rounded to bfloat16
  q8,    // 8 bits, one scale (max|x|/127) a 32-block; see kernels/q8_block.h
};

// Which 32-blocks of a q8 row get a second term, the rounding error of the first in 8 bits. The
// choice depends on the row alone: kernels/refine.h.
enum class Refinement : std::uint8_t {
  outliers,  // those far above the row's mean: a few
  most,      // all but those below it: for inputs whose errors reach far
};

// The format that weights of a type are multiplied with.
ActivationFormat activation_format(ElementType weights, Precision precision);

// Bytes of one prepared row, a multiple of 64.
std::size_t prepared_row_bytes(ActivationFormat format, std::uint32_t cols);

// Rows prepared once by Kernels::prepare and read by every product that needs them.
struct Activations {
  ActivationFormat format = ActivationFormat::f32;
  std::uint32_t rows = 0;
  std::uint32_t cols = 0;
  const std::byte* data = nullptr;  // [rows, row_stride], 64-byte aligned
  std::size_t row_stride = 0;       // at least prepared_row_bytes
};

// What becomes of a sum s, after the bias has been added.
enum class Epilogue : std::uint8_t {
  store,          // y = s
  add,            // y = y + s, the residual
  silu_multiply,  // y = silu(y) * s: gate stands in y, s is up
  gelu_multiply,  // y = gelu(y) * s, by the tanh approximation
};

struct Product {
  const Matrix* weights = nullptr;
  const float* bias = nullptr;  // [weights->rows], or null
  Activations x;
  float* out = nullptr;        // [x.rows, out_stride]
  std::size_t out_stride = 0;  // floats, at least weights->rows
  Epilogue epilogue = Epilogue::store;
  // Where given, y in the epilogue is what this product stores, which has the same x, out and rows:
  // it need not pass through memory.
  const Product* gate = nullptr;
  // Where not 0, a name of what x holds: of calls with the same scratch and the same name, the
  // first alone need lay it out. Another x, or other contents, must have another name.
  std::uint64_t operand = 0;
  // What the thread reads after these rows, where that isn't the rows behind them: fetched ahead
  // instead of those.
  const std::byte* then = nullptr;
};

// The kernels of one instruction set.
struct Kernels {
  Isa isa;
  // Lays out `cols` floats in a format; pads the last block with zeros. `refinement` matters to q8.
  void (*prepare)(ActivationFormat format, Refinement refinement, const float* x,
                  std::uint32_t cols, std::byte* out);
  // Outputs [row_begin, row_end) of all x.rows, one at least; row_begin is a multiple of kRowTile,
  // row_end too unless it is weights->rows. `scratch` holds multiply_scratch_bytes(cols), 64-byte
  // aligned, one a thread.
  void (*multiply)(const Product& product, std::uint32_t row_begin, std::uint32_t row_end,
                   std::byte* scratch);
  // y = silu(y) * s or its like, `size` floats: what the epilogue does where s has been changed
  // after its product.
  void (*apply_gate)(Epilogue epilogue, const float* s, std::uint32_t size, float* y);
  // Which kernel runs for `rows` rows of activations, in words, for `info` and `bench`.
  std::string (*describe)(ElementType weights, ActivationFormat format, std::uint32_t rows);
};

inline constexpr std::uint32_t kRowTile = 16;  // weight rows of a register tile: the lanes of a zmm

std::size_t multiply_scratch_bytes(std::uint32_t max_cols);

const Kernels& kernels(Isa isa);

}  // namespace edgerunner::cpu
