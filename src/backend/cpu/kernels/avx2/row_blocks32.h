#pragma once

// The row kernels' formats whose blocks hold 32 weights and a scale.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/avx2/row_layout.h"
#include "backend/cpu/kernels/avx2/simd.h"
#include "backend/cpu/kernels/codes.h"
#include "backend/cpu/kernels/row_format.h"
#include "backend/cpu/kernels/unpack_blocks32.h"

namespace edgerunner::cpu {
namespace {

inline __m128i load16(const std::uint8_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
inline __m256i load32(const std::uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

inline Avx2::Codes unsigned_codes(__m256i codes) { return {codes, codes}; }
inline Avx2::Codes signed_codes(__m256i weights) { return {weights, _mm256_abs_epi8(weights)}; }

// The nibbles of 16 bytes: the low ones, then the high ones.
inline __m256i nibbles(const std::uint8_t* p) {
  const __m128i bytes = load16(p);
  return _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(bytes, 4), bytes),
                          _mm256_set1_epi8(0x0F));
}

// The f16 at kAt of eight units.
template <int kAt, class Units>
inline __m256 read_halves(const Units& units) {
  std::int16_t words[8];
  for (int i = 0; i < 8; ++i) __builtin_memcpy(&words[i], units(i) + kAt, sizeof words[i]);
  return _mm256_cvtph_ps(_mm_setr_epi16(words[0], words[1], words[2], words[3], words[4], words[5],
                                        words[6], words[7]));
}

// A format whose blocks begin with an f16, or two.
template <CodeForm kFormOf, int kBlockBytes, bool kSigned, int kOffsetOf>
struct Block32Row {
  using S = Avx2;
  using Codes = Avx2::Codes;
  using Layout = BlocksLayout;
  static constexpr CodeForm kForm = kFormOf;
  static constexpr std::uint32_t kUnit = 1;
  static constexpr std::size_t kUnitBytes = kBlockBytes;
  static constexpr int kOffset = kOffsetOf;
  static constexpr bool kSignedCodes = kSigned;
  static constexpr bool kHalfCodes = false;

  template <class Units>
  static RowScales<S> read_scales(const Units& units) {
    RowScales<S> scales;
    scales.scale[0] = read_halves<0>(units);
    if constexpr (kForm == CodeForm::minimum) scales.minimum = read_halves<2>(units);
    return scales;
  }
};

struct Q8_0Row : Block32Row<CodeForm::signed_codes, 34, true, 0> {
  template <class Units>
  static void read_codes(const Units& units, Codes codes[8]) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) codes[i] = signed_codes(load32(units(i) + 2));
  }
};

template <CodeForm kFormOf, int kBlockBytes, int kCodesAt, int kOffsetOf>
struct FourBitRow : Block32Row<kFormOf, kBlockBytes, false, kOffsetOf> {
  template <class Units>
  static void read_codes(const Units& units, Avx2::Codes codes[8]) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) codes[i] = unsigned_codes(nibbles(units(i) + kCodesAt));
  }
};

using Q4_0Row = FourBitRow<CodeForm::signed_codes, 18, 2, 8>;
using Q4_1Row = FourBitRow<CodeForm::minimum, 20, 4, 0>;

// The fifth bits stand in the 4 bytes before the nibbles.
template <CodeForm kFormOf, int kBlockBytes, int kBitsAt, int kOffsetOf>
struct FiveBitRow : Block32Row<kFormOf, kBlockBytes, false, kOffsetOf> {
  template <class Units>
  static void read_codes(const Units& units, Avx2::Codes codes[8]) {
    const __m256i byte_of_bit =
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x(static_cast<std::int64_t>(0x8040201008040201U));
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      std::int32_t word = 0;
      __builtin_memcpy(&word, units(i) + kBitsAt, sizeof word);
      const __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32(word), byte_of_bit);
      const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit);
      codes[i] = unsigned_codes(_mm256_or_si256(nibbles(units(i) + kBitsAt + 4),
                                                _mm256_and_si256(set, _mm256_set1_epi8(16))));
    }
  }
};

using Q5_0Row = FiveBitRow<CodeForm::signed_codes, 22, 2, 16>;
using Q5_1Row = FiveBitRow<CodeForm::minimum, 24, 4, 0>;

struct Iq4NlRow : Block32Row<CodeForm::signed_codes, 18, true, 0> {
  template <class Units>
  static void read_codes(const Units& units, Codes codes[8]) {
    const __m256i table = Avx2::table(kIq4CodeValues);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      codes[i] = signed_codes(_mm256_shuffle_epi8(table, nibbles(units(i) + 2)));
    }
  }
};

struct Mxfp4Row : Block32Row<CodeForm::signed_codes, 17, true, 0> {
  template <class Units>
  static void read_codes(const Units& units, Codes codes[8]) {
    const __m256i table = Avx2::table(kMxfp4CodeValues);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      codes[i] = signed_codes(_mm256_shuffle_epi8(table, nibbles(units(i) + 1)));
    }
  }
  template <class Units>
  static RowScales<S> read_scales(const Units& units) {
    const auto exponent = [&](int i) { return static_cast<int>(*units(i)); };
    RowScales<S> scales;
    scales.scale[0] =
        exponent_scale<Avx2>(_mm256_setr_epi32(exponent(0), exponent(1), exponent(2), exponent(3),
                                               exponent(4), exponent(5), exponent(6), exponent(7)));
    return scales;
  }
};

}  // namespace
}  // namespace edgerunner::cpu
