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

// Short words, for vectors that are quantised to 8 bits next: 4 bytes, the upper 20 bits of an f32
// above the tag's lower 12. What a word held before had the tag of a layer or two earlier, so those
// suffice.
inline constexpr std::uint32_t kShortTag = 0xFFFU;
__device__ inline void publish(std::uint32_t* to, float value, std::uint32_t tag) {
  const std::uint32_t bits = __float_as_uint(value);
  // What is not a number is not rounded: it would become one.
  const std::uint32_t rounded = fabsf(value) < INFINITY ? bits + (kShortTag + 1) / 2 : bits;
  store_relaxed(to, (rounded & ~kShortTag) | (tag & kShortTag));
}

// The four values from element i on.
__device__ inline float4 receive_four(const std::uint64_t* from, std::uint32_t i,
                                      std::uint32_t tag) {
  ulonglong2 low;
  ulonglong2 high;
  do {
    low = load_relaxed2(from + i);
    high = load_relaxed2(from + i + 2);
  } while (!has_tag(low.x, tag) || !has_tag(low.y, tag) || !has_tag(high.x, tag) ||
           !has_tag(high.y, tag));
  return {published_value(low.x), published_value(low.y), published_value(high.x),
          published_value(high.y)};
}

// kSteps groups of four neighbouring values for each thread, kStride elements apart, all in flight
// at once; what has come is not asked for again. Groups that begin at or past `count` are zeros.
template <int kSteps, std::uint32_t kStride>
__device__ inline void receive(const std::uint32_t* from, std::uint32_t first, std::uint32_t count,
                               std::uint32_t tag, float4 (&out)[kSteps]) {
  tag &= kShortTag;
  uint4 words[kSteps];
  bool missing[kSteps];
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    words[step] = {0, 0, 0, 0};
    missing[step] = first + step * kStride < count;
  }
  bool waiting;
  do {
    waiting = false;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (missing[step]) words[step] = load_relaxed4(from + first + step * kStride);
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const uint4 w = words[step];
      const std::uint32_t wrong = (w.x ^ tag) | (w.y ^ tag) | (w.z ^ tag) | (w.w ^ tag);
      missing[step] = missing[step] && (wrong & kShortTag) != 0;
      waiting = waiting || missing[step];
    }
  } while (waiting);
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const uint4 w = words[step];
    out[step] = {__uint_as_float(w.x & ~kShortTag), __uint_as_float(w.y & ~kShortTag),
                 __uint_as_float(w.z & ~kShortTag), __uint_as_float(w.w & ~kShortTag)};
  }
}

}  // namespace edgerunner::cuda
