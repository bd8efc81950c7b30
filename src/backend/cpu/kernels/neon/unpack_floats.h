#pragma once

// Panels of f32: rows of 32-bit words, transposed.

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/codes.h"
#include "backend/cpu/kernels/neon/simd.h"
#include "backend/cpu/kernels/panel_kernel.h"

namespace edgerunner::cpu {
namespace {

// Lane r of out[c] is lane c of in[r].
inline void transpose(const uint32x4_t in[4], uint32x4_t out[4]) {
  const uint64x2_t a = vreinterpretq_u64_u32(vtrn1q_u32(in[0], in[1]));  // columns 0 and 2
  const uint64x2_t b = vreinterpretq_u64_u32(vtrn2q_u32(in[0], in[1]));  // columns 1 and 3
  const uint64x2_t c = vreinterpretq_u64_u32(vtrn1q_u32(in[2], in[3]));
  const uint64x2_t d = vreinterpretq_u64_u32(vtrn2q_u32(in[2], in[3]));
  out[0] = vreinterpretq_u32_u64(vtrn1q_u64(a, c));
  out[1] = vreinterpretq_u32_u64(vtrn1q_u64(b, d));
  out[2] = vreinterpretq_u32_u64(vtrn2q_u64(a, c));
  out[3] = vreinterpretq_u32_u64(vtrn2q_u64(b, d));
}

// `bytes` bytes from `offset` on of each row, as vectors of 32 bits; what a last one lacks is zero.
inline void transpose_rows(const std::uint8_t* const* rows, std::size_t offset, std::size_t bytes,
                           std::uint8_t* out, std::size_t stride) {
  std::size_t i = 0;
  for (; i + 16 <= bytes; i += 16) {
    uint32x4_t in[4];
    uint32x4_t columns[4];
    for (int r = 0; r < 4; ++r) in[r] = vreinterpretq_u32_u8(vld1q_u8(rows[r] + offset + i));
    transpose(in, columns);
    for (int c = 0; c < 4; ++c) {
      vst1q_u8(out, vreinterpretq_u8_u32(columns[c]));
      out += stride;
    }
  }
  for (; i < bytes; i += 4) {
    std::uint32_t column[4] = {};
    for (int r = 0; r < 4; ++r) {
      __builtin_memcpy(&column[r], rows[r] + offset + i, bytes - i < 4 ? bytes - i : 4);
    }
    vst1q_u8(out, vreinterpretq_u8_u32(vld1q_u32(column)));
    out += stride;
  }
}

// Weights that are f32 in the file.
void unpack_f32(const PanelSource<Neon>& source, std::uint32_t first, std::uint32_t steps,
                std::uint8_t* out, std::size_t stride, std::byte*) {
  transpose_rows(source.rows, 4 * std::size_t{first}, 4 * std::size_t{steps}, out, stride);
}

// Weights of any other type, as dequantize() has them.
void unpack_dequantized(const PanelSource<Neon>& source, std::uint32_t first, std::uint32_t steps,
                        std::uint8_t* out, std::size_t stride, std::byte* temporary) {
  const std::uint8_t* rows[4];
  for (int r = 0; r < 4; ++r) {
    float* row = reinterpret_cast<float*>(temporary) + std::size_t{steps} * r;
    dequantize_columns(source.type, source.rows[r], first, steps, row);
    rows[r] = reinterpret_cast<const std::uint8_t*>(row);
  }
  transpose_rows(rows, 0, 4 * std::size_t{steps}, out, stride);
}

}  // namespace
}  // namespace edgerunner::cpu
