#pragma once

// The vector operations that the panel algorithm is written over, on AVX-512 with VNNI and BF16.
// Included by translation units of this instruction set only.

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "backend/cpu/kernels/codes.h"
#include "backend/cpu/kernels/q8_block.h"

namespace edgerunner::cpu {
namespace {

struct Avx512 {
  using F = __m512;
  using I = __m512i;
  static constexpr int kLanes = 16;
  // 32 registers: 2 x 6 integer and 2 x 6 float accumulators leave 8 for operands, and two panel
  // rows share each broadcast of an activation.
  static constexpr int kPanels = 2;
  static constexpr int kTokens = 6;
  static constexpr int kTokensHalves = 4;  // of CodeForm::half_scales, which holds a third set

  static F zero() { return _mm512_setzero_ps(); }
  static F set(float x) { return _mm512_set1_ps(x); }
  static F load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, F x) { _mm512_storeu_ps(p, x); }
  static F load_first(const float* p, std::uint32_t count) {
    return _mm512_maskz_loadu_ps(first(count), p);
  }
  static void store_first(float* p, F x, std::uint32_t count) {
    _mm512_mask_storeu_ps(p, first(count), x);
  }
  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F div(F a, F b) { return _mm512_div_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F max(F a, F b) { return _mm512_max_ps(a, b); }
  static F min(F a, F b) { return _mm512_min_ps(a, b); }
  static F negate(F a) {
    return _mm512_castsi512_ps(
        _mm512_xor_si512(_mm512_castps_si512(a), _mm512_set1_epi32(INT32_MIN)));
  }
  static F power_of_two(F shifted) {
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_slli_epi32(_mm512_castps_si512(shifted), 23),
                                                _mm512_set1_epi32(127 << 23)));
  }
  static F to_float(I a) { return _mm512_cvtepi32_ps(a); }

  // Four codes a lane, against the same four activations in every lane.
  using Codes = __m512i;
  template <bool kSigned>
  static Codes load_codes(const std::uint8_t* p) {
    return _mm512_load_si512(p);
  }
  static I broadcast(const void* four_bytes) {
    std::int32_t bits = 0;
    std::memcpy(&bits, four_bytes, sizeof bits);
    return _mm512_set1_epi32(bits);
  }
  template <bool kSigned>
  static I dot(I sum, Codes codes, I x) {
    return _mm512_dpbusd_epi32(sum, codes, x);
  }
  // What an integer sum begins with: undoes the offset of signed codes.
  static I start(const Q8Block& x) { return _mm512_set1_epi32(x.start); }
  static I start_first_half(const Q8Block& x) {
    return _mm512_dpwssd_epi32(_mm512_setzero_si512(), broadcast(x.half_sum),
                               _mm512_set1_epi32(-kCodeOffset & 0xFFFF));
  }
  static I start_second_half(const Q8Block& x, I first) {
    return _mm512_sub_epi32(start(x), first);
  }
  static I zero_integers() { return _mm512_setzero_si512(); }
  // Sum of two products of 16-bit integers.
  static I dot_pairs(I a, I b) { return _mm512_dpwssd_epi32(_mm512_setzero_si512(), a, b); }
  static I load_integers(const std::uint8_t* p) { return _mm512_load_si512(p); }

  // Two bfloat16 a lane; the second product is added first.
  static F dot_bf16(F sum, I weights, I x) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(weights),
                            reinterpret_cast<__m512bh>(x));
  }

 private:
  static __mmask16 first(std::uint32_t count) {
    return count >= 16 ? 0xFFFF : static_cast<__mmask16>((1U << count) - 1);
  }
};

}  // namespace
}  // namespace edgerunner::cpu
