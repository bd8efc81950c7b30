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
__device__ inline int dot16(uint4 a, uint4 b) {
  return dot4(a.x, b.x, dot4(a.y, b.y, dot4(a.z, b.z, dot4(a.w, b.w, 0))));
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

// This lane's share of the product with a segment of `elements` elements; x begins at the segment's
// first column. Specialised for the types that models are shipped in.
template <ElementType T>
__device__ inline float lane_dot(const std::uint8_t* seg, int elements, const QuantizedVector& x,
                                 int lane) {
  constexpr int kBlock = static_cast<int>(layout(T).block_length);
  const int n = elements / kBlock;
  float sum = 0;
  if constexpr (T == ElementType::q8_0) {
#pragma unroll 4
    for (int c = lane; c < 2 * n; c += 32) {  // 16 bytes: half a block
      const int dot = dot16(load16(seg + 16 * c), load16(x.codes + 16 * c));
      const float scale = half_at(seg + 32 * n + 2 * (c >> 1)) * x.scales[c >> 1];
      sum = fmaf(scale, static_cast<float>(dot), sum);
    }
  } else if constexpr (T == ElementType::q4_0 || T == ElementType::q4_1) {
#pragma unroll 4
    for (int b = lane; b < n; b += 32) {
      const uint4 q = load16(seg + 16 * b);
      const int dot = dot16(q & kLowNibbles, load16(x.codes + 32 * b)) +
                      dot16((q >> 4) & kLowNibbles, load16(x.codes + 32 * b + 16));
      const float total = x.sums[2 * b] + x.sums[2 * b + 1];
      const float product = x.scales[b] * static_cast<float>(dot);
      if constexpr (T == ElementType::q4_0) {
        sum = fmaf(half_at(seg + 16 * n + 2 * b), product - 8.0F * total, sum);
      } else {
        const float2 dm = __half22float2(*reinterpret_cast<const __half2*>(seg + 16 * n + 4 * b));
        sum = fmaf(dm.x, product, fmaf(dm.y, total, sum));
      }
    }
  } else if constexpr (T == ElementType::q4_k || T == ElementType::q5_k) {
    constexpr bool kFive = T == ElementType::q5_k;
#pragma unroll 2
    for (int c = lane; c < 8 * n; c += 32) {  // 16 bytes: parts of two neighbouring sub-blocks
      const int b = c >> 3;
      const int g = (c >> 1) & 3;
      const int h = c & 1;
      const int first = 256 * b + 64 * g + 16 * h;
      const uint4 q = load16(seg + 16 * c);
      uint4 low = q & kLowNibbles;
      uint4 high = (q >> 4) & kLowNibbles;
      if constexpr (kFive) {
        const uint4 fifth = load16(seg + 128 * n + 32 * b + 16 * h) >> (2 * g);
        low = low | ((fifth & 0x01010101U) << 4);
        high = high | (((fifth >> 1) & 0x01010101U) << 4);
      }
      const int dot_low = dot16(low, load16(x.codes + first));
      const int dot_high = dot16(high, load16(x.codes + first + 32));
      // (d, dmin, scales): the two sub-blocks' scales and minima are two neighbouring bytes each.
      const uint4 header = load16(seg + (kFive ? 160 : 128) * n + 16 * b);
      const int shift = 16 * (g & 1);
      const std::uint32_t first4 = header.y >> shift;
      const std::uint32_t second4 = header.z >> shift;
      const std::uint32_t third4 = header.w >> shift;
      const std::uint32_t scale =
          g < 2 ? first4 & 0x3F3FU : (third4 & 0x0F0FU) | ((first4 >> 2) & 0x3030U);
      const std::uint32_t minimum =
          g < 2 ? second4 & 0x3F3FU : ((third4 >> 4) & 0x0F0FU) | ((second4 >> 2) & 0x3030U);
      const float2 dm = __half22float2(*reinterpret_cast<const __half2*>(&header.x));
      const int group = first >> 5;
      const float product =
          static_cast<float>(scale & 0xFFU) * (x.scales[group] * static_cast<float>(dot_low)) +
          static_cast<float>(scale >> 8 & 0xFFU) *
              (x.scales[group + 1] * static_cast<float>(dot_high));
      const float offset = static_cast<float>(minimum & 0xFFU) * x.sums[first >> 4] +
                           static_cast<float>(minimum >> 8 & 0xFFU) * x.sums[(first >> 4) + 2];
      sum = fmaf(dm.x, product, sum) - dm.y * offset;
    }
  } else if constexpr (T == ElementType::q6_k) {
#pragma unroll 2
    for (int c = lane; c < 8 * n; c += 32) {  // 16 bytes of low nibbles: two sub-blocks
      const int b = c >> 3;
      const int half = (c >> 2) & 1;
      const int q = c & 3;
      const uint4 ql = load16(seg + 16 * c);
      const uint4 qh = load16(seg + 128 * n + 64 * b + 32 * half + 16 * (q & 1)) >> (2 * (q >> 1));
      const uint4 low = (ql & kLowNibbles) | ((qh & 0x03030303U) << 4);
      const uint4 high = ((ql >> 4) & kLowNibbles) | (((qh >> 4) & 0x03030303U) << 4);
      const int first = 256 * b + 128 * half + 16 * q;
      const float dot_low = static_cast<float>(dot16(low, load16(x.codes + first)));
      const float dot_high = static_cast<float>(dot16(high, load16(x.codes + first + 64)));
      const auto* const scales = reinterpret_cast<const std::int8_t*>(seg + 192 * n + 16 * b);
      const float product =
          static_cast<float>(scales[8 * half + q]) *
              (x.scales[first >> 5] * dot_low - 32.0F * x.sums[first >> 4]) +
          static_cast<float>(scales[8 * half + 4 + q]) *
              (x.scales[(first >> 5) + 2] * dot_high - 32.0F * x.sums[(first >> 4) + 4]);
      sum = fmaf(half_at(seg + 208 * n + 2 * b), product, sum);
    }
  } else {
#pragma unroll 1
    for (int i = lane; i < elements; i += 32) {
      sum = fmaf(value<T>(seg, n, i), x.scales[i >> 5] * static_cast<float>(x.codes[i]), sum);
    }
  }
  return sum;
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
