#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "backend/cuda/segment.h"
#include "backend/cuda/unpack.cuh"

// Neighbouring elements of a row of a weight matrix, rounded to f16.

namespace edgerunner::cuda {

// How many at a time: sixteen for the types that models are shipped in, whose codes are read 4 to
// 16 bytes at once; eight for the others.
template <ElementType T>
inline constexpr bool kHasFastUnpack =
    T == ElementType::q8_0 || T == ElementType::q4_k || T == ElementType::q6_k ||
    T == ElementType::q4_0 || T == ElementType::q4_1;
template <ElementType T>
inline constexpr int kUnpackStep = kHasFastUnpack<T> ? 16 : 8;

// scale * code + offset for the four codes in the bytes of `codes`. A byte, made positive, becomes
// the low one of a float of 2^23: what is taken off it leaves the code, exactly. A permutation and
// an addition, where a shift and a conversion would do the same.
__device__ inline void unpack_four(std::uint32_t codes, float scale, float offset, __half2* out) {
  const std::uint32_t positive = codes ^ 0x80808080U;
  const auto code = [&](std::uint32_t i) {
    return __uint_as_float(__byte_perm(positive, 0x4B000000U, 0x7440U | i)) - (0x1p23F + 128.0F);
  };
  out[0] = __floats2half2_rn(fmaf(scale, code(0), offset), fmaf(scale, code(1), offset));
  out[1] = __floats2half2_rn(fmaf(scale, code(2), offset), fmaf(scale, code(3), offset));
}

// Elements at, at + 1, ... of a segment of n blocks.
template <ElementType T>
__device__ inline void unpack_segment_fast(const std::uint8_t* seg, std::uint32_t n,
                                           std::uint32_t at, __half2 (&pairs)[8]) {
  uint4 codes;  // of the sixteen, a byte each
  float scale;
  float offset = 0;
  if constexpr (T == ElementType::q8_0) {
    codes = *reinterpret_cast<const uint4*>(seg + at);
    scale = half_at(seg + 32 * n + 2 * (at / 32));
  } else if constexpr (T == ElementType::q4_0 || T == ElementType::q4_1) {
    const std::uint32_t b = at / 32;
    const int shift = at & 16 ? 4 : 0;
    const uint4 q = *reinterpret_cast<const uint4*>(seg + 16 * b);
    codes = {(q.x >> shift) & 0x0F0F0F0FU, (q.y >> shift) & 0x0F0F0F0FU,
             (q.z >> shift) & 0x0F0F0F0FU, (q.w >> shift) & 0x0F0F0F0FU};
    if constexpr (T == ElementType::q4_0) {
      scale = half_at(seg + 16 * n + 2 * b);
      offset = -8.0F * scale;
    } else {
      scale = half_at(seg + 16 * n + 4 * b);
      offset = half_at(seg + 16 * n + 4 * b + 2);
    }
  } else if constexpr (T == ElementType::q4_k) {
    const std::uint32_t b = at / 256;
    const int j = static_cast<int>(at / 32 & 7);
    const int shift = 4 * (j & 1);
    const uint4 q = *reinterpret_cast<const uint4*>(seg + 128 * b + 32 * (j >> 1) + (at & 16));
    codes = {(q.x >> shift) & 0x0F0F0F0FU, (q.y >> shift) & 0x0F0F0F0FU,
             (q.z >> shift) & 0x0F0F0F0FU, (q.w >> shift) & 0x0F0F0F0FU};
    const std::uint8_t* const scales = seg + 128 * n + 16 * b;
    const std::uint8_t* const dm = seg + 144 * n + 4 * b;
    scale = half_at(dm) * static_cast<float>(scales[k_scale_at(j)]);
    offset = -half_at(dm + 2) * static_cast<float>(scales[k_minimum_at(j)]);
  } else {
    static_assert(T == ElementType::q6_k);
    const std::uint32_t b = at / 256;
    const std::uint32_t half = at / 128 & 1;
    const std::uint32_t k = at & 127;
    const int low_shift = k >= 64 ? 4 : 0;
    const int high_shift = static_cast<int>(2 * (k / 32));
    const uint4 ql = *reinterpret_cast<const uint4*>(seg + 128 * b + 64 * half + (k & 63));
    const uint4 qh = *reinterpret_cast<const uint4*>(seg + 128 * n + 64 * b + 32 * half + (k & 31));
    const auto join = [&](std::uint32_t low, std::uint32_t high) {
      return ((low >> low_shift) & 0x0F0F0F0FU) | (((high >> high_shift) & 0x03030303U) << 4);
    };
    codes = {join(ql.x, qh.x), join(ql.y, qh.y), join(ql.z, qh.z), join(ql.w, qh.w)};
    scale = half_at(seg + 208 * n + 2 * b) *
            static_cast<float>(static_cast<std::int8_t>(seg[192 * n + 16 * b + (at / 16 & 15)]));
    offset = -32.0F * scale;
  }
  unpack_four(codes.x, scale, offset, pairs);
  unpack_four(codes.y, scale, offset, pairs + 2);
  unpack_four(codes.z, scale, offset, pairs + 4);
  unpack_four(codes.w, scale, offset, pairs + 6);
}

// Elements i, i + 1, ... of a row of `cols`, packed in pairs; i is a multiple of kUnpackStep<T>.
template <ElementType T>
__device__ inline void unpack_half(const std::uint8_t* row, std::uint32_t cols, std::uint32_t i,
                                   uint4 (&out)[kUnpackStep<T> / 8]) {
  constexpr Layout kLayout = layout(T);
  const std::uint32_t segment = i / kLayout.segment_elements;
  const std::uint32_t rest = cols - segment * kLayout.segment_elements;
  const std::uint32_t n =
      (rest < kLayout.segment_elements ? rest : kLayout.segment_elements) / kLayout.block_length;
  const std::uint8_t* const seg = row + static_cast<std::size_t>(segment) * segment_bytes(kLayout);
  const std::uint32_t at = i - segment * kLayout.segment_elements;
  alignas(16) __half2 pairs[kUnpackStep<T> / 2];
  if constexpr (kHasFastUnpack<T>) {
    unpack_segment_fast<T>(seg, n, at, pairs);
  } else {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int first = static_cast<int>(at) + 2 * k;
      pairs[k] = __floats2half2_rn(value<T>(seg, static_cast<int>(n), first),
                                   value<T>(seg, static_cast<int>(n), first + 1));
    }
  }
#pragma unroll
  for (int k = 0; k < kUnpackStep<T> / 8; ++k) {
    out[k] = *reinterpret_cast<const uint4*>(pairs + 4 * k);
  }
}

}  // namespace edgerunner::cuda
