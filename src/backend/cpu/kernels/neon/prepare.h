#pragma once

// Lays out a row of activations; the same bits as the portable way.

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/q8_block.h"
#include "backend/cpu/kernels/refine.h"
#include "backend/cpu/matmul.h"

namespace edgerunner::cpu {
namespace {

inline void prepare_q8_block(const float* x, Q8Block& out) {
  float32x4_t part[8];
  uint32x4_t larger = vdupq_n_u32(0);
  for (int i = 0; i < 8; ++i) {
    part[i] = vld1q_f32(x + 4 * i);
    larger = vmaxq_u32(larger, vreinterpretq_u32_f32(vabsq_f32(part[i])));
  }
  const std::uint32_t magnitude = vmaxvq_u32(larger);  // as bits: NaN > infinity > every number
  float largest = 0;
  __builtin_memcpy(&largest, &magnitude, sizeof largest);
  const bool finite = magnitude < 0x7F800000U;
  if (!finite || largest < kSmallestMagnitude) {
    __builtin_memset(&out, 0, sizeof out);
    if (!finite) out.scale = out.scaled_sum = __builtin_nanf("");
    return;
  }
  const float32x4_t inverse = vdupq_n_f32(127.0F / largest);
  for (int half = 0; half < 2; ++half) {
    int32x4_t q[4];
    for (int i = 0; i < 4; ++i) q[i] = vcvtnq_s32_f32(vmulq_f32(part[4 * half + i], inverse));
    const int16x8_t low = vcombine_s16(vmovn_s32(q[0]), vmovn_s32(q[1]));
    const int16x8_t high = vcombine_s16(vmovn_s32(q[2]), vmovn_s32(q[3]));
    vst1q_s8(out.q + 16 * half, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
    out.half_sum[half] = vaddvq_s16(vaddq_s16(low, high));
  }
  const int sum = out.half_sum[0] + out.half_sum[1];
  out.scale = largest / 127.0F;
  out.scaled_sum = out.scale * static_cast<float>(sum);
  out.start = -kCodeOffset * sum;
}

// Four bfloat16, rounded to nearest, ties to even; not a number stays so.
inline uint16x4_t to_bf16(float32x4_t x) {
  const uint32x4_t bits = vreinterpretq_u32_f32(x);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t rounded = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7FFF)), odd);
  const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
  return vshrn_n_u32(vbslq_u32(vceqq_f32(x, x), rounded, quiet), 16);
}

// The same, but subnormal numbers become zero.
inline uint16x4_t flush_to_bf16(float32x4_t x) {
  const uint32x4_t bits = vreinterpretq_u32_f32(x);
  const uint32x4_t exponent = vandq_u32(bits, vdupq_n_u32(0x7F800000));
  const uint16x4_t sign = vand_u16(vshrn_n_u32(bits, 16), vdup_n_u16(0x8000));
  return vbsl_u16(vmovn_u32(vceqzq_u32(exponent)), sign, to_bf16(x));
}

// Columns [begin, begin + kCount) of a row; zeros beyond its end.
template <int kCount>
inline const float* padded(const float* x, std::uint32_t begin, std::uint32_t cols,
                           float (&buffer)[kCount]) {
  if (begin + kCount <= cols) return x + begin;
  for (std::uint32_t i = 0; i < kCount; ++i) buffer[i] = begin + i < cols ? x[begin + i] : 0.0F;
  return buffer;
}

// What is left of a block's values after those that its integers stand for.
inline void residual(const float* x, const Q8Block& block, float* out) {
  for (int i = 0; i < kQ8Length; i += 8) {
    const int16x8_t q = vmovl_s8(vld1_s8(block.q + i));
    const float32x4_t low = vcvtq_f32_s32(vmovl_s16(vget_low_s16(q)));
    const float32x4_t high = vcvtq_f32_s32(vmovl_s16(vget_high_s16(q)));
    const float32x4_t scale = vdupq_n_f32(block.scale);
    vst1q_f32(out + i, vfmsq_f32(vld1q_f32(x + i), scale, low));
    vst1q_f32(out + i + 4, vfmsq_f32(vld1q_f32(x + i + 4), scale, high));
  }
}

inline void prepare_row(ActivationFormat format, Refinement refinement, const float* x,
                        std::uint32_t cols, std::byte* out) {
  switch (format) {
    case ActivationFormat::f32:
      __builtin_memcpy(out, x, cols * sizeof(float));
      return;
    case ActivationFormat::bf16:
      for (std::uint32_t i = 0; i < (cols + 15) / 16 * 16; i += 4) {
        float buffer[4];
        vst1_u16(reinterpret_cast<std::uint16_t*>(out) + i,
                 flush_to_bf16(vld1q_f32(padded(x, i, cols, buffer))));
      }
      return;
    case ActivationFormat::q8:
      for (std::uint32_t i = 0; i < cols; i += kQ8Length) {
        float buffer[kQ8Length];
        prepare_q8_block(padded(x, i, cols, buffer),
                         reinterpret_cast<Q8Block*>(out)[i / kQ8Length]);
      }
      add_terms(refinement, out, q8_blocks(cols),
                [&](std::uint32_t b, const Q8Block& block, Q8Block& term) {
                  float buffer[kQ8Length];
                  float left[kQ8Length];
                  residual(padded(x, b * kQ8Length, cols, buffer), block, left);
                  prepare_q8_block(left, term);
                });
      return;
  }
}

}  // namespace
}  // namespace edgerunner::cpu
