#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "backend/cuda/segment.h"
#include "backend/cuda/unpack.cuh"

// Products of a segment of weights with activations quantised to 8 bits, by one warp. The integer
// sums are exact; scales are applied in f32, 16 or 32 elements at a time.

namespace edgerunner::cuda {

// A vector quantised in groups of 32: x[i] ~ scale[i / 32] * code[i], code in [-127, 127].
struct QuantizedVector {
  const std::int8_t* codes;  // [cols], aligned to 16
  const float* scales;       // [cols / 32]
  const float* sums;         // [cols / 16], scale * (sum of 16 codes): what an offset multiplies
};

__device__ inline int dot4(std::uint32_t a, std::uint32_t b, int sum) {
  return __dp4a(static_cast<int>(a), static_cast<int>(b), sum);
}
// A sum of products that begins at this has the bits of the float 1.5 * 2^23 plus itself, as long
// as it stays below 2^22: a subtraction makes it a float, where a conversion would take longer.
constexpr int kSumAsFloat = 0x4B400000;
__device__ inline float float_of(int sum) {
  return __int_as_float(sum) - __int_as_float(kSumAsFloat);
}
__device__ inline float dot16(uint4 a, uint4 b) {
  return float_of(dot4(a.x, b.x, dot4(a.y, b.y, dot4(a.z, b.z, dot4(a.w, b.w, kSumAsFloat)))));
}
__device__ inline uint4 operator&(uint4 a, std::uint32_t m) {
  return {a.x & m, a.y & m, a.z & m, a.w & m};
}
__device__ inline uint4 operator|(uint4 a, uint4 b) {
  return {a.x | b.x, a.y | b.y, a.z | b.z, a.w | b.w};
}
__device__ inline uint4 operator>>(uint4 a, int s) {
  return {a.x >> s, a.y >> s, a.z >> s, a.w >> s};
}
__device__ inline uint4 operator<<(uint4 a, int s) {
  return {a.x << s, a.y << s, a.z << s, a.w << s};
}
__device__ inline uint4 load16(const void* p) { return *static_cast<const uint4*>(p); }

constexpr std::uint32_t kLowNibbles = 0x0F0F0F0FU;

// Unsigned bytes times signed ones.
__device__ inline int dot4_unsigned(std::uint32_t a, std::uint32_t b, int sum) {
  int result;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
  return result;
}
__device__ inline float dot16_unsigned(uint4 a, uint4 b) {
  return float_of(dot4_unsigned(
      a.x, b.x,
      dot4_unsigned(a.y, b.y, dot4_unsigned(a.z, b.z, dot4_unsigned(a.w, b.w, kSumAsFloat)))));
}

// Calls step(i) for this lane's i of [0, count), every 32nd; kFullCount is the count where kFull.
// kUnroll of those are in flight at once: more would need more registers than there are.
template <bool kFull, int kFullCount, int kUnroll = 4, typename Step>
__device__ inline void each_step(int lane, int count, const Step& step) {
  if constexpr (kFull) {
    static_assert(kFullCount % 32 == 0);
#pragma unroll kUnroll
    for (int i = 0; i < kFullCount / 32; ++i) step(lane + 32 * i);
  } else {
#pragma unroll 1
    for (int i = lane; i < count; i += 32) step(i);
  }
}

// This lane's shares of the products with a segment of each of kRows rows, added to `sums`. All
// segments are of `elements` elements, and x begins at their first column: what is read of it
// serves all rows. Specialised for the types that models are shipped in.
//
// kFull: the segments are whole, so that the number of steps is known and nothing is checked
// between them.
template <ElementType T, int kRows, bool kFull>
__device__ inline void lane_dot(const std::uint8_t* const (&segs)[kRows], int elements,
                                const QuantizedVector& x, int lane, float (&sums)[kRows]) {
  constexpr int kBlock = static_cast<int>(layout(T).block_length);
  constexpr int kFullBlocks = static_cast<int>(layout(T).segment_elements) / kBlock;
  const int n = kFull ? kFullBlocks : elements / kBlock;
  if constexpr (T == ElementType::q8_0) {
    const auto step_if = [&](int c, bool used) {  // 16 bytes: half a block
      const uint4 codes = load16(x.codes + 16 * c);
      const float x_scale = used ? x.scales[c >> 1] : 0.0F;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float dot = dot16(load16(segs[r] + 16 * c), codes);
        const float scale = half_at(segs[r] + 32 * n + 2 * (c >> 1)) * x_scale;
        sums[r] = fmaf(scale, dot, sums[r]);
      }
    };
    if constexpr (kFull) {
      each_step<true, 2 * kFullBlocks>(lane, 2 * n, [&](int c) { step_if(c, true); });
    } else {
      // Three steps in flight at once: a short row of a small model is over with them.
#pragma unroll 1
      for (int c = lane; c < 2 * n; c += 96) {
        step_if(c, true);
        step_if(c + 32 < 2 * n ? c + 32 : c, c + 32 < 2 * n);
        step_if(c + 64 < 2 * n ? c + 64 : c, c + 64 < 2 * n);
      }
    }
  } else if constexpr (T == ElementType::q4_0 || T == ElementType::q4_1) {
    const auto step = [&](int b) {
      const uint4 first = load16(x.codes + 32 * b);
      const uint4 second = load16(x.codes + 32 * b + 16);
      const float total = x.sums[2 * b] + x.sums[2 * b + 1];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const uint4 q = load16(segs[r] + 16 * b);
        const float dot = dot16(q & kLowNibbles, first) + dot16((q >> 4) & kLowNibbles, second);
        const float product = x.scales[b] * dot;
        if constexpr (T == ElementType::q4_0) {
          sums[r] = fmaf(half_at(segs[r] + 16 * n + 2 * b), product - 8.0F * total, sums[r]);
        } else {
          const float2 dm =
              __half22float2(*reinterpret_cast<const __half2*>(segs[r] + 16 * n + 4 * b));
          sums[r] = fmaf(dm.x, product, fmaf(dm.y, total, sums[r]));
        }
      }
    };
    each_step<kFull, kFullBlocks>(lane, n, step);
  } else if constexpr (T == ElementType::q4_k || T == ElementType::q5_k) {
    constexpr bool kFive = T == ElementType::q5_k;
    const std::uint8_t* scales[kRows];
    const std::uint8_t* dm[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      scales[r] = segs[r] + (kFive ? 160 : 128) * n;
      dm[r] = scales[r] + 16 * n;
    }
    // 16 bytes: parts of two neighbouring sub-blocks. A lane's place in its block is always the
    // same.
    const int g = (lane >> 1) & 3;
    const int h = lane & 1;
    const auto step = [&](int c) {
      const int b = c >> 3;
      const int first = 256 * b + 64 * g + 16 * h;
      const uint4 x_low = load16(x.codes + first);
      const uint4 x_high = load16(x.codes + first + 32);
      float2 x_scale = *reinterpret_cast<const float2*>(x.scales + (first >> 5));
      // High nibbles of 4-bit codes are multiplied where they stand: sixteen times as much.
      if constexpr (!kFive) x_scale.y *= 0.0625F;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const uint4 q = load16(segs[r] + 16 * c);
        float dot_low;
        float dot_high;
        if constexpr (kFive) {
          const uint4 fifth = load16(segs[r] + 128 * n + 32 * b + 16 * h) >> (2 * g);
          const uint4 low = (q & kLowNibbles) | ((fifth & 0x01010101U) << 4);
          const uint4 high = ((q >> 4) & kLowNibbles) | (((fifth >> 1) & 0x01010101U) << 4);
          dot_low = dot16(low, x_low);
          dot_high = dot16(high, x_high);
        } else {
          dot_low = dot16(q & kLowNibbles, x_low);
          dot_high = dot16_unsigned(q & ~kLowNibbles, x_high);
        }
        const std::uint32_t scale =
            *reinterpret_cast<const std::uint16_t*>(scales[r] + 16 * b + k_scale_at(2 * g));
        const float product = static_cast<float>(scale & 0xFFU) * (x_scale.x * dot_low) +
                              static_cast<float>(scale >> 8) * (x_scale.y * dot_high);
        sums[r] = fmaf(half_at(dm[r] + 4 * b), product, sums[r]);
      }
    };
    each_step<kFull, 8 * kFullBlocks, 2>(lane, 8 * n, step);
    // What the minima take off, four sub-blocks, half a block, at a time.
    const auto take_minima = [&](int i) {
      const float4 a = *reinterpret_cast<const float4*>(x.sums + 8 * i);
      const float4 b = *reinterpret_cast<const float4*>(x.sums + 8 * i + 4);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const std::uint32_t minima = *reinterpret_cast<const std::uint32_t*>(scales[r] + 8 * i + 4);
        float offset = static_cast<float>(minima & 0xFFU) * (a.x + a.y);
        offset = fmaf(static_cast<float>(minima >> 8 & 0xFFU), a.z + a.w, offset);
        offset = fmaf(static_cast<float>(minima >> 16 & 0xFFU), b.x + b.y, offset);
        offset = fmaf(static_cast<float>(minima >> 24), b.z + b.w, offset);
        sums[r] = fmaf(-half_at(dm[r] + 4 * (i >> 1) + 2), offset, sums[r]);
      }
    };
    each_step<kFull, 2 * kFullBlocks>(lane, 2 * n, take_minima);
  } else if constexpr (T == ElementType::q6_k) {
    const auto step = [&](int c) {  // 16 bytes of low nibbles: two sub-blocks
      const int b = c >> 3;
      const int half = (c >> 2) & 1;
      const int q = c & 3;
      const int first = 256 * b + 128 * half + 16 * q;
      const uint4 x_low = load16(x.codes + first);
      const uint4 x_high = load16(x.codes + first + 64);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const uint4 ql = load16(segs[r] + 16 * c);
        const uint4 qh =
            load16(segs[r] + 128 * n + 64 * b + 32 * half + 16 * (q & 1)) >> (2 * (q >> 1));
        const uint4 low = (ql & kLowNibbles) | ((qh & 0x03030303U) << 4);
        const uint4 high = ((ql >> 4) & kLowNibbles) | (((qh >> 4) & 0x03030303U) << 4);
        const float dot_low = dot16(low, x_low);
        const float dot_high = dot16(high, x_high);
        const auto* const scales = reinterpret_cast<const std::int8_t*>(segs[r] + 192 * n + 16 * b);
        const float product =
            static_cast<float>(scales[8 * half + q]) *
                (x.scales[first >> 5] * dot_low - 32.0F * x.sums[first >> 4]) +
            static_cast<float>(scales[8 * half + 4 + q]) *
                (x.scales[(first >> 5) + 2] * dot_high - 32.0F * x.sums[(first >> 4) + 4]);
        sums[r] = fmaf(half_at(segs[r] + 208 * n + 2 * b), product, sums[r]);
      }
    };
    each_step<kFull, 8 * kFullBlocks>(lane, 8 * n, step);
  } else {
#pragma unroll 1
    for (int i = lane; i < elements; i += 32) {
      const float by = x.scales[i >> 5] * static_cast<float>(x.codes[i]);
#pragma unroll
      for (int r = 0; r < kRows; ++r) sums[r] = fmaf(value<T>(segs[r], n, i), by, sums[r]);
    }
  }
}

template <ElementType T>
__device__ inline float lane_dot(const std::uint8_t* seg, int elements, const QuantizedVector& x,
                                 int lane) {
  const std::uint8_t* const segs[1] = {seg};
  float sums[1] = {0};
  lane_dot<T, 1, false>(segs, elements, x, lane, sums);
  return sums[0];
}

// The types without a specialisation, out of line.
__device__ inline float lane_dot_other(ElementType type, const std::uint8_t* seg, int elements,
                                       QuantizedVector x, int lane) {
  switch (type) {
#define EDGERUNNER_CASE(T) \
  case ElementType::T:     \
    return lane_dot<ElementType::T>(seg, elements, x, lane);
    EDGERUNNER_CASE(f32)
    EDGERUNNER_CASE(f16)
    EDGERUNNER_CASE(bf16)
    EDGERUNNER_CASE(q5_0)
    EDGERUNNER_CASE(q5_1)
    EDGERUNNER_CASE(q5_k)
    EDGERUNNER_CASE(q2_k)
    EDGERUNNER_CASE(q3_k)
    EDGERUNNER_CASE(iq4_nl)
    EDGERUNNER_CASE(iq4_xs)
    EDGERUNNER_CASE(mxfp4)
#undef EDGERUNNER_CASE
    default:
      return 0;
  }
}

__device__ inline float lane_dot_any(ElementType type, const std::uint8_t* seg, int elements,
                                     const QuantizedVector& x, int lane) {
  switch (type) {
    case ElementType::q8_0:
      return lane_dot<ElementType::q8_0>(seg, elements, x, lane);
    case ElementType::q4_k:
      return lane_dot<ElementType::q4_k>(seg, elements, x, lane);
    case ElementType::q6_k:
      return lane_dot<ElementType::q6_k>(seg, elements, x, lane);
    case ElementType::q4_0:
      return lane_dot<ElementType::q4_0>(seg, elements, x, lane);
    case ElementType::q4_1:
      return lane_dot<ElementType::q4_1>(seg, elements, x, lane);
    default:
      return lane_dot_other(type, seg, elements, x, lane);
  }
}

}  // namespace edgerunner::cuda
