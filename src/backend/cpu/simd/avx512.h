#pragma once

#include <immintrin.h>

#include <cstdint>

// Sixteen floats, for the algorithms that are written once over `Simd`. Included only by
// translation units compiled for AVX-512; internal linkage keeps its code inside of them.
namespace edgerunner::cpu {
namespace {

struct Simd {
  using Vector = __m512;
  static constexpr int kLanes = 16;
  // 6 rows x 4 vectors of sums, 4 vectors of the shared operand: 28 of 32 registers.
  static constexpr int kPanelVectors = 4;

  static Vector load(const float* from) { return _mm512_loadu_ps(from); }
  static Vector load(const std::uint16_t* from) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  static Vector load(const std::int8_t* from) {
    return _mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
  }
  static void store(float* to, Vector x) { _mm512_storeu_ps(to, x); }
  // Rounds to the nearest half, ties to even.
  static void store(std::uint16_t* to, Vector x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  // x is whole, from -128 to 127.
  static void store(std::int8_t* to, Vector x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(x)));
  }
  static Vector broadcast(float x) { return _mm512_set1_ps(x); }
  static Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
  static Vector sub(Vector a, Vector b) { return _mm512_sub_ps(a, b); }
  static Vector mul(Vector a, Vector b) { return _mm512_mul_ps(a, b); }
  static Vector div(Vector a, Vector b) { return _mm512_div_ps(a, b); }
  static Vector fma(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
  // min and max give b where a is not a number.
  static Vector min(Vector a, Vector b) { return _mm512_min_ps(a, b); }
  static Vector max(Vector a, Vector b) { return _mm512_max_ps(a, b); }
  static Vector absolute(Vector x) { return _mm512_abs_ps(x); }
  static Vector round(Vector x) {
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  // x * 2^n where x >= least, else 0; n whole and at least -125.
  static Vector scale_by_power(Vector x, Vector n, Vector exponent, Vector least) {
    const __mmask16 keep = _mm512_cmp_ps_mask(exponent, least, _CMP_NLT_UQ);
    return _mm512_maskz_scalef_ps(keep, x, n);
  }
  // Lanes begin to end - 1 of x, the others of `other`.
  static Vector select(Vector x, Vector other, int begin, int end) {
    const auto below = [](int lanes) {
      return lanes <= 0 ? 0U : lanes >= kLanes ? 0xFFFFU : (1U << lanes) - 1U;
    };
    return _mm512_mask_blend_ps(static_cast<__mmask16>(below(end) & ~below(begin)), other, x);
  }
  static Vector swap_pairs(Vector x) { return _mm512_permute_ps(x, 0xB1); }
  static float sum(Vector x) {
    const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 quarter = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    quarter = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_add_ss(quarter, _mm_movehdup_ps(quarter)));
  }
  static float largest(Vector x) {
    const __m256 half = _mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 quarter = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    quarter = _mm_max_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_max_ss(quarter, _mm_movehdup_ps(quarter)));
  }
  static float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }
};

}  // namespace
}  // namespace edgerunner::cpu
