#pragma once

// Lays out a row of activations; the same bits as the portable way.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/q8_block.h"
#include "backend/cpu/kernels/refine.h"
#include "backend/cpu/matmul.h"

namespace edgerunner::cpu {
namespace {

inline std::int16_t sum_bytes(__m128i q) {
  const __m256i pairs = _mm256_madd_epi16(_mm256_cvtepi8_epi16(q), _mm256_set1_epi16(1));
  __m128i four = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xB1));
  return static_cast<std::int16_t>(_mm_cvtsi128_si32(four));
}

inline void prepare_q8_block(__m512 low, __m512 high, Q8Block& out) {
  const __m512i magnitude_mask = _mm512_set1_epi32(0x7FFFFFFF);
  const __m512i larger =
      _mm512_max_epu32(_mm512_and_si512(_mm512_castps_si512(low), magnitude_mask),
                       _mm512_and_si512(_mm512_castps_si512(high), magnitude_mask));
  const std::uint32_t magnitude = _mm512_reduce_max_epu32(larger);
  float largest = 0;
  __builtin_memcpy(&largest, &magnitude, sizeof largest);
  const bool finite = magnitude < 0x7F800000U;
  if (!finite || largest < kSmallestMagnitude) {
    __builtin_memset(&out, 0, sizeof out);
    if (!finite) out.scale = out.scaled_sum = __builtin_nanf("");
    return;
  }
  const __m512 inverse = _mm512_set1_ps(127.0F / largest);
  const __m128i q_low = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(low, inverse)));
  const __m128i q_high = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(high, inverse)));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out.q), q_low);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out.q + 16), q_high);
  out.half_sum[0] = sum_bytes(q_low);
  out.half_sum[1] = sum_bytes(q_high);
  const int sum = out.half_sum[0] + out.half_sum[1];
  out.scale = largest / 127.0F;
  out.scaled_sum = out.scale * static_cast<float>(sum);
  out.start = -kCodeOffset * sum;
}

// What is left of 16 values after those that `q` stands for.
inline __m512 residual(__m512 x, const Q8Block& block, const std::int8_t* q) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(q));
  const __m512 values = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
  return _mm512_fnmadd_ps(_mm512_set1_ps(block.scale), values, x);
}

inline __mmask16 mask_of(std::uint32_t count) {
  return count >= 16 ? 0xFFFF : static_cast<__mmask16>((1U << count) - 1);
}

inline void prepare_row(ActivationFormat format, Refinement refinement, const float* x,
                        std::uint32_t cols, std::byte* out) {
  const auto load = [&](std::uint32_t i) {
    return i < cols ? _mm512_maskz_loadu_ps(mask_of(cols - i), x + i) : _mm512_setzero_ps();
  };
  switch (format) {
    case ActivationFormat::f32:
      for (std::uint32_t i = 0; i < cols; i += 16) {
        _mm512_storeu_ps(reinterpret_cast<float*>(out) + i, load(i));
      }
      return;
    case ActivationFormat::bf16:
      for (std::uint32_t i = 0; i < cols; i += 32) {
        _mm512_storeu_si512(out + 2 * std::size_t{i},
                            reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(load(i + 16), load(i))));
      }
      return;
    case ActivationFormat::q8: {
      auto* blocks = reinterpret_cast<Q8Block*>(out);
      for (std::uint32_t i = 0; i < cols; i += kQ8Length) {
        prepare_q8_block(load(i), load(i + 16), blocks[i / kQ8Length]);
      }
      add_terms(refinement, out, q8_blocks(cols),
                [&](std::uint32_t b, const Q8Block& block, Q8Block& term) {
                  const std::uint32_t i = b * kQ8Length;
                  prepare_q8_block(residual(load(i), block, block.q),
                                   residual(load(i + 16), block, block.q + 16), term);
                });
      return;
    }
  }
}

}  // namespace
}  // namespace edgerunner::cpu
