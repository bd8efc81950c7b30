#pragma once

// Steps of weights of 16 bits on their way to tiles: 32 columns of a row, as bfloat16.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace edgerunner::cpu {
namespace {

inline constexpr std::uint32_t kStepColumns = 32;
inline constexpr std::size_t kStepBytes = sizeof(std::uint16_t) * kStepColumns;

inline std::uint32_t bf16_steps(std::uint32_t cols) {
  return (cols + kStepColumns - 1) / kStepColumns;
}

template <bool kFromHalves>
[[gnu::always_inline]] inline __m512i as_bf16(__m512i columns) {
  if constexpr (!kFromHalves) return columns;
  const __m512 low = _mm512_cvtph_ps(_mm512_castsi512_si256(columns));
  const __m512 high = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(columns, 1));
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}

template <bool kFromHalves>
[[gnu::always_inline]] inline __m512i load_step(const std::uint8_t* p) {
  if constexpr (kFromHalves) {
    const auto half = [&](int i) {
      return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p) + i));
    };
    return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(half(1), half(0)));
  }
  return _mm512_loadu_si512(p);
}

// The first `count` columns, of 31 at most, and zeros.
template <bool kFromHalves>
[[gnu::always_inline]] inline __m512i load_rest(const std::uint8_t* p, std::uint32_t count) {
  return as_bf16<kFromHalves>(_mm512_maskz_loadu_epi16((std::uint32_t{1} << count) - 1, p));
}

}  // namespace
}  // namespace edgerunner::cpu
