#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "backend/cuda/ptx.cuh"

// How blocks of the decode kernel hand each other vectors. A value travels in one word with a tag
// that names the layer and token it belongs to, and a reader polls the words themselves. Nobody
// waits for a fence, a counter and then the data: one trip through the L2 replaces three.
//
// A word is never overwritten too early: every block contributes rows to every phase, and computes
// them only after it has read the whole input, so whoever writes the next layer's word has
// received, directly or through others, something from every block that read this layer's.

namespace edgerunner::cuda {

// f32 values: 8 bytes, the tag above the value.
__device__ inline void publish(std::uint64_t* to, float value, std::uint32_t tag) {
  store_relaxed(to, static_cast<std::uint64_t>(tag) << 32 | __float_as_uint(value));
}
__device__ inline bool has_tag(std::uint64_t word, std::uint32_t tag) {
  return static_cast<std::uint32_t>(word >> 32) == tag;
}
__device__ inline float published_value(std::uint64_t word) {
  return __uint_as_float(static_cast<std::uint32_t>(word));
}
__device__ inline float receive(const std::uint64_t* from, std::uint32_t tag) {
  std::uint64_t word;
  do {
    word = load_relaxed(from);
  } while (!has_tag(word, tag));
  return published_value(word);
}

// f16 values, saturated: 4 bytes, the tag's low half above the value. For vectors that are
// quantised to 8 bits next.
__device__ inline void publish(std::uint32_t* to, float value, std::uint32_t tag) {
  const __half half = __float2half_rn(fminf(fmaxf(value, -65504.0F), 65504.0F));
  store_relaxed(to, tag << 16 | __half_as_ushort(half));
}

// kSteps groups of four neighbouring values for each thread, kStride elements apart, all in flight
// at once. Groups that begin at or past `count` are zeros.
template <int kSteps, std::uint32_t kStride>
__device__ inline void receive(const std::uint64_t* from, std::uint32_t first, std::uint32_t count,
                               std::uint32_t tag, float4 (&out)[kSteps]) {
  bool complete;
  do {
    complete = true;
    ulonglong2 low[kSteps];
    ulonglong2 high[kSteps];
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const std::uint32_t i = first + step * kStride;
      if (i >= count) continue;
      low[step] = load_relaxed2(from + i);
      high[step] = load_relaxed2(from + i + 2);
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      out[step] = {0, 0, 0, 0};
      if (first + step * kStride >= count) continue;
      complete = complete && has_tag(low[step].x, tag) && has_tag(low[step].y, tag) &&
                 has_tag(high[step].x, tag) && has_tag(high[step].y, tag);
      out[step] = {published_value(low[step].x), published_value(low[step].y),
                   published_value(high[step].x), published_value(high[step].y)};
    }
  } while (!complete);
}

template <int kSteps, std::uint32_t kStride>
__device__ inline void receive(const std::uint32_t* from, std::uint32_t first, std::uint32_t count,
                               std::uint32_t tag, float4 (&out)[kSteps]) {
  tag &= 0xFFFFU;
  const auto value = [](std::uint32_t word) {
    return __half2float(__ushort_as_half(static_cast<unsigned short>(word & 0xFFFFU)));
  };
  bool complete;
  do {
    complete = true;
    uint4 words[kSteps];
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const std::uint32_t i = first + step * kStride;
      if (i < count) words[step] = load_relaxed4(from + i);
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      out[step] = {0, 0, 0, 0};
      if (first + step * kStride >= count) continue;
      const uint4 w = words[step];
      complete =
          complete && w.x >> 16 == tag && w.y >> 16 == tag && w.z >> 16 == tag && w.w >> 16 == tag;
      out[step] = {value(w.x), value(w.y), value(w.z), value(w.w)};
    }
  } while (!complete);
}

}  // namespace edgerunner::cuda
