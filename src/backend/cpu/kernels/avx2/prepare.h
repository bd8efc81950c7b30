#pragma once

// Lays out a row of activations; the same bits as the portable way.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backend/cpu/kernels/avx2/simd.h"
#include "backend/cpu/kernels/q8_block.h"
#include "backend/cpu/kernels/refine.h"
#include "backend/cpu/matmul.h"

namespace edgerunner::cpu {
namespace {

inline int sum_lanes(__m256i x) {
  __m128i four = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xB1));
  return _mm_cvtsi128_si32(four);
}

inline std::uint32_t largest_lane(__m256i x) {
  __m128i four = _mm_max_epu32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0x4E));
  four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0xB1));
  return static_cast<std::uint32_t>(_mm_cvtsi128_si32(four));
}

inline void prepare_q8_block(const __m256 x[4], Q8Block& out) {
  __m256i larger = _mm256_setzero_si256();
  for (int i = 0; i < 4; ++i) {
    larger = _mm256_max_epu32(
        larger, _mm256_and_si256(_mm256_castps_si256(x[i]), _mm256_set1_epi32(0x7FFFFFFF)));
  }
  const std::uint32_t magnitude = largest_lane(larger);
  float largest = 0;
  std::memcpy(&largest, &magnitude, sizeof largest);
  const bool finite = magnitude < 0x7F800000U;
  if (!finite || largest < kSmallestMagnitude) {
    std::memset(&out, 0, sizeof out);
    if (!finite) out.scale = out.scaled_sum = __builtin_nanf("");
    return;
  }
  const __m256 inverse = _mm256_set1_ps(127.0F / largest);
  __m256i q[4];
  for (int i = 0; i < 4; ++i) q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(x[i], inverse));
  // Packing works within halves; the permutation puts groups of four back in order.
  const __m256i bytes = _mm256_permutevar8x32_epi32(
      _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3])),
      _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out.q), bytes);
  const int sums[2] = {sum_lanes(_mm256_add_epi32(q[0], q[1])),
                       sum_lanes(_mm256_add_epi32(q[2], q[3]))};
  out.half_sum[0] = static_cast<std::int16_t>(sums[0]);
  out.half_sum[1] = static_cast<std::int16_t>(sums[1]);
  out.scale = largest / 127.0F;
  out.scaled_sum = out.scale * static_cast<float>(sums[0] + sums[1]);
  out.start = -kCodeOffset * (sums[0] + sums[1]);
}

// What is left of 8 values after those that `q` stands for.
inline __m256 residual(__m256 x, const Q8Block& block, const std::int8_t* q) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(q));
  const __m256 values = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
  return _mm256_fnmadd_ps(_mm256_set1_ps(block.scale), values, x);
}

inline void prepare_row(ActivationFormat format, Refinement refinement, const float* x,
                        std::uint32_t cols, std::byte* out) {
  const auto load = [&](std::uint32_t i) {
    return i < cols ? Avx2::load_first(x + i, cols - i) : _mm256_setzero_ps();
  };
  switch (format) {
    case ActivationFormat::f32:
      for (std::uint32_t i = 0; i < cols; i += 16) {
        _mm256_storeu_ps(reinterpret_cast<float*>(out) + i, load(i));
        _mm256_storeu_ps(reinterpret_cast<float*>(out) + i + 8, load(i + 8));
      }
      return;
    case ActivationFormat::bf16:
      for (std::uint32_t i = 0; i < cols; i += 32) {
        for (std::uint32_t j = i; j < i + 32; j += 8) {
          _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 2 * std::size_t{j}),
                           Avx2::to_bf16(load(j)));
        }
      }
      return;
    case ActivationFormat::q8: {
      auto* blocks = reinterpret_cast<Q8Block*>(out);
      for (std::uint32_t i = 0; i < cols; i += kQ8Length) {
        const __m256 block[4] = {load(i), load(i + 8), load(i + 16), load(i + 24)};
        prepare_q8_block(block, blocks[i / kQ8Length]);
      }
      add_terms(refinement, out, q8_blocks(cols),
                [&](std::uint32_t b, const Q8Block& block, Q8Block& term) {
                  __m256 left[4];
                  for (std::uint32_t i = 0; i < 4; ++i) {
                    left[i] = residual(load(b * kQ8Length + 8 * i), block, block.q + 8 * i);
                  }
                  prepare_q8_block(left, term);
                });
      return;
    }
  }
}

}  // namespace
}  // namespace edgerunner::cpu
