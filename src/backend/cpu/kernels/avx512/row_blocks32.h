#pragma once

// The row kernels' format whose blocks hold 32 weights and a scale.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/avx512/row_layout.h"
#include "backend/cpu/kernels/avx512/simd.h"
#include "backend/cpu/kernels/avx512/transpose.h"
#include "backend/cpu/kernels/codes.h"
#include "backend/cpu/kernels/row_format.h"

namespace edgerunner::cpu {
namespace {

struct Q8_0Row {
  using S = Avx512;
  using Codes = __m512i;
  using Layout = AdjacentPairs;
  static constexpr CodeForm kForm = CodeForm::signed_codes;
  static constexpr std::uint32_t kUnit = 2;
  static constexpr std::size_t kUnitBytes = 2 * 34;
  static constexpr int kOffset = kCodeOffset;
  static constexpr bool kHalfCodes = false;

  template <class Units>
  static void read_codes(const Units& units, __m512i codes[8]) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      const __m512i pair = _mm512_inserti64x4(_mm512_castsi256_si512(load32(units(i) + 2)),
                                              load32(units(i) + 36), 1);
      codes[i] = _mm512_xor_si512(pair, _mm512_set1_epi8(static_cast<char>(kCodeOffset)));
    }
  }
  template <class Units>
  static RowScales<S> read_scales(const Units& units) {
    // Words 0 and 17 of a pair, to lanes of the layout: a pair's blocks are four lanes apart. Even
    // lanes are of one unit, odd ones of the next.
    const __m512i index = _mm512_broadcast_i64x4(
        _mm256_setr_epi16(0, 32, 0, 32, 17, 49, 17, 49, 0, 32, 0, 32, 17, 49, 17, 49));
    const auto two = [&](int i) __attribute__((always_inline)) {
      return pick_words(index, 0x33U << (i / 4 * 8 + i % 4), units(i), units(i + 1));
    };
    const __m512i words = join(two(0), two(2), two(4), two(6));
    RowScales<S> scales;
    scales.scale[0] = _mm512_cvtph_ps(_mm512_castsi512_si256(words));
    return scales;
  }
};

}  // namespace
}  // namespace edgerunner::cpu
