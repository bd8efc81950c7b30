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

// Lane b of each quarter: the largest lane of m[b].
inline __m512i largest_of_each(const __m512i m[4]) {
  const __m512i first =
      _mm512_max_epu32(_mm512_unpacklo_epi32(m[0], m[1]), _mm512_unpackhi_epi32(m[0], m[1]));
  const __m512i second =
      _mm512_max_epu32(_mm512_unpacklo_epi32(m[2], m[3]), _mm512_unpackhi_epi32(m[2], m[3]));
  __m512i all =
      _mm512_max_epu32(_mm512_unpacklo_epi64(first, second), _mm512_unpackhi_epi64(first, second));
  all = _mm512_max_epu32(all, _mm512_shuffle_i32x4(all, all, 0x4E));
  return _mm512_max_epu32(all, _mm512_shuffle_i32x4(all, all, 0xB1));
}

// The sums of the halves of four blocks, two of them in each of q: those of first halves in the
// lowest quarter, of second halves in the next.
inline __m512i sums_of_halves(const __m512i q[2]) {
  const __m512i ones = _mm512_set1_epi8(1);
  const __m512i first = _mm512_dpbusd_epi32(_mm512_setzero_si512(), ones, q[0]);
  const __m512i second = _mm512_dpbusd_epi32(_mm512_setzero_si512(), ones, q[1]);
  __m512i sums =
      _mm512_add_epi32(_mm512_unpacklo_epi32(first, second), _mm512_unpackhi_epi32(first, second));
  sums = _mm512_add_epi32(sums, _mm512_shuffle_epi32(sums, _MM_PERM_BADC));
  return _mm512_permutexvar_epi32(
      _mm512_setr_epi32(0, 8, 1, 9, 4, 12, 5, 13, 0, 0, 0, 0, 0, 0, 0, 0), sums);
}

// Four blocks of x at once; false, with nothing written, where one of them is not an ordinary one.
inline bool prepare_four_blocks(const float* x, Q8Block* out) {
  const __m512i magnitude_mask = _mm512_set1_epi32(0x7FFFFFFF);
  __m512 values[8];
  __m512i magnitudes[4];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) values[i] = _mm512_loadu_ps(x + 16 * i);
#pragma GCC unroll 4
  for (int b = 0; b < 4; ++b) {
    magnitudes[b] =
        _mm512_max_epu32(_mm512_and_si512(_mm512_castps_si512(values[2 * b]), magnitude_mask),
                         _mm512_and_si512(_mm512_castps_si512(values[2 * b + 1]), magnitude_mask));
  }
  const __m128i bits = _mm512_castsi512_si128(largest_of_each(magnitudes));
  const __m128 largest = _mm_castsi128_ps(bits);
  if (_mm_cmplt_epi32_mask(bits, _mm_set1_epi32(0x7F800000)) != 0xF ||
      _mm_cmp_ps_mask(largest, _mm_set1_ps(kSmallestMagnitude), _CMP_GE_OQ) != 0xF) {
    return false;
  }
  float inverse[4];
  _mm_storeu_ps(inverse, _mm_div_ps(_mm_set1_ps(127.0F), largest));
  __m512i integers[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    integers[i] = _mm512_cvtps_epi32(_mm512_mul_ps(values[i], _mm512_set1_ps(inverse[i / 2])));
  }
  // Packing works within quarters; the permutation puts groups of four back in order.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  __m512i q[2];
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const __m512i* four = integers + 4 * i;
    q[i] =
        _mm512_permutexvar_epi32(order, _mm512_packs_epi16(_mm512_packs_epi32(four[0], four[1]),
                                                           _mm512_packs_epi32(four[2], four[3])));
  }
  const __m512i halves = sums_of_halves(q);
  const __m128i low = _mm512_castsi512_si128(halves);
  const __m128i high = _mm512_extracti32x4_epi32(halves, 1);
  const __m128i sum = _mm_add_epi32(low, high);
  const __m128 scale = _mm_div_ps(largest, _mm_set1_ps(127.0F));
  // With a block a lane; transposed, what follows each block's integers.
  __m128 a = scale;
  __m128 b = _mm_mul_ps(scale, _mm_cvtepi32_ps(sum));
  __m128 c = _mm_castsi128_ps(_mm_mullo_epi32(sum, _mm_set1_epi32(-kCodeOffset)));
  __m128 d = _mm_castsi128_ps(
      _mm_or_si128(_mm_slli_epi32(high, 16), _mm_and_si128(low, _mm_set1_epi32(0xFFFF))));
  _MM_TRANSPOSE4_PS(a, b, c, d);
  const __m128 rest[4] = {a, b, c, d};
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(out[i].q),
        i % 2 == 0 ? _mm512_castsi512_si256(q[i / 2]) : _mm512_extracti64x4_epi64(q[i / 2], 1));
    _mm_storeu_ps(&out[i].scale, rest[i]);
  }
  return true;
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
      for (std::uint32_t i = 0; i < cols;) {
        if (i + 4 * kQ8Length <= cols && prepare_four_blocks(x + i, blocks + i / kQ8Length)) {
          i += 4 * kQ8Length;
          continue;
        }
        prepare_q8_block(load(i), load(i + 16), blocks[i / kQ8Length]);
        i += kQ8Length;
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
