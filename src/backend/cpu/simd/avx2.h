#pragma once

#include <immintrin.h>

#include <cstdint>

// Eight floats, for the algorithms that are written once over `Simd`. Included only by translation
// units compiled for AVX2, FMA and F16C; internal linkage keeps its code inside of them.
namespace edgerunner::cpu {
namespace {

struct Simd {
  using Vector = __m256;
  static constexpr int kLanes = 8;
  // 6 rows x 2 vectors of sums, 2 vectors of the shared operand, 1 broadcast: 15 of 16 registers.
  static constexpr int kPanelVectors = 2;

  static Vector load(const float* from) { return _mm256_loadu_ps(from); }
  static Vector load(const std::uint16_t* from) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static Vector load(const std::int8_t* from) {
    return _mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
  }
  static void store(float* to, Vector x) { _mm256_storeu_ps(to, x); }
  // Rounds to the nearest half, ties to even.
  static void store(std::uint16_t* to, Vector x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                     _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  // x is whole, from -128 to 127.
  static void store(std::int8_t* to, Vector x) {
    const __m256i whole = _mm256_cvtps_epi32(x);
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packs_epi16(words, words));
  }
  static Vector broadcast(float x) { return _mm256_set1_ps(x); }
  static Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  static Vector sub(Vector a, Vector b) { return _mm256_sub_ps(a, b); }
  static Vector mul(Vector a, Vector b) { return _mm256_mul_ps(a, b); }
  static Vector div(Vector a, Vector b) { return _mm256_div_ps(a, b); }
  static Vector fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
  // min and max give b where a is not a number.
  static Vector min(Vector a, Vector b) { return _mm256_min_ps(a, b); }
  static Vector max(Vector a, Vector b) { return _mm256_max_ps(a, b); }
  static Vector absolute(Vector x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), x); }
  static Vector round(Vector x) {
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  // x * 2^n where exponent >= least, else 0; n whole and at least -125, x in [0.5, 2].
  static Vector scale_by_power(Vector x, Vector n, Vector exponent, Vector least) {
    const __m256i shifted = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
    const __m256 scaled = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(x), shifted));
    return _mm256_and_ps(scaled, _mm256_cmp_ps(exponent, least, _CMP_NLT_UQ));
  }
  // Lanes begin to end - 1 of x, the others of `other`.
  static Vector select(Vector x, Vector other, int begin, int end) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i keep = _mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(begin), lane),
                                             _mm256_cmpgt_epi32(_mm256_set1_epi32(end), lane));
    return _mm256_blendv_ps(other, x, _mm256_castsi256_ps(keep));
  }
  static Vector swap_pairs(Vector x) { return _mm256_permute_ps(x, 0xB1); }
  static float sum(Vector x) {
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
  }
  static float largest(Vector x) {
    __m128 half = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    half = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
  }
  static float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }
};

}  // namespace
}  // namespace edgerunner::cpu
