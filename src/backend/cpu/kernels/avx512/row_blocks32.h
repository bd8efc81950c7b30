#pragma once

// The row kernels' formats whose blocks hold 32 weights and a scale.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/avx512/row_layout.h"
#include "backend/cpu/kernels/avx512/simd.h"
#include "backend/cpu/kernels/avx512/transpose.h"
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

struct Q8_0Row {
  using S = Avx512;
  using Codes = __m512i;
  using Layout = AdjacentPairs;
  static constexpr CodeForm kForm = CodeForm::signed_codes;
  static constexpr std::uint32_t kUnit = 2;
  static constexpr std::uint32_t kPart = kUnit;
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

// The four blocks of unit i, of which 16 bytes from kAt on hold the nibbles of 32 weights.
template <int kAt, class Units>
inline void read_nibbles(const Units& units, int i, __m512i codes[2]) {
  const auto pair = [&](int b) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load16(units.block(i, b) + kAt)),
                                   load16(units.block(i, b + 1) + kAt), 1);
  };
  const __m512i bytes = _mm512_inserti64x4(_mm512_castsi256_si512(pair(0)), pair(2), 1);
  const __m512i low = _mm512_set1_epi8(0x0F);
  codes[0] = _mm512_and_si512(bytes, low);
  codes[1] = _mm512_and_si512(_mm512_srli_epi16(bytes, 4), low);
}

// The words that hold byte kAt of all blocks of four quads, by lane, in the lower half; those of
// byte kAt + 2 in the upper.
template <int kBlockBytes, int kAt, class Units>
inline __m512i read_words(const Units& units) {
  constexpr bool kOneLoad = Units::kWhole && 3 * kBlockBytes + kAt + 4 <= 64;
  // Where 64 bytes begin that end with two blocks, beside the first of the two.
  constexpr int kPair = 2 * kBlockBytes - 64;
  constexpr int kFirst = Units::kWhole ? 0 : kPair;
  constexpr int kLast = kOneLoad ? -2 * kBlockBytes : kPair;
  constexpr int k0 = kAt - kFirst;
  constexpr int k1 = k0 + kBlockBytes;
  constexpr int k2 = kAt - kLast;
  constexpr int k3 = k2 + kBlockBytes;
  if constexpr (kOneLoad) {  // of two quads at once, in even and odd lanes
    const auto four = [](int byte) {
      return byte / 2 * std::int64_t{0x0001000100010001} + std::int64_t{0x0020000000200000};
    };
    const __m512i index = _mm512_setr_epi64(four(k0), four(k1), four(k2), four(k3), four(k0 + 2),
                                            four(k1 + 2), four(k2 + 2), four(k3 + 2));
    return _mm512_or_si512(pick_words(index, 0x33333333U, units.block(0, 0), units.block(1, 0)),
                           pick_words(index, 0xCCCCCCCCU, units.block(2, 0), units.block(3, 0)));
  } else {
    const auto four = [](int byte) { return byte / 2 * std::int64_t{0x0001000100010001}; };
    constexpr int kSecond = 64;  // bytes of the second place come after those of the first
    const __m512i index =
        _mm512_setr_epi64(four(k0), four(k1), four(kSecond + k2), four(kSecond + k3), four(k0 + 2),
                          four(k1 + 2), four(kSecond + k2 + 2), four(kSecond + k3 + 2));
    const auto quad = [&](int i) __attribute__((always_inline)) {
      return pick_words(index, 0x11111111U << i, units.block(i, 0) + kFirst,
                        units.block(i, 2) + kLast);
    };
    return join(quad(0), quad(1), quad(2), quad(3));
  }
}

// A format of quads whose blocks begin with an f16, or two. A quad may be two blocks of each of two
// rows, of which each has four at least.
template <CodeForm kFormOf, int kBlockBytes>
struct QuadsRow {
  using S = Avx512;
  using Codes = __m512i;
  using Layout = QuadsLayout;
  static constexpr CodeForm kForm = kFormOf;
  static constexpr std::uint32_t kUnit = 4;
  static constexpr std::uint32_t kPart = 2;
  static constexpr std::size_t kUnitBytes = 4 * std::size_t{kBlockBytes};
  static constexpr bool kHalfCodes = false;

  template <class Units>
  static RowScales<S> read_scales(const Units& units) {
    const __m512i words = read_words<kBlockBytes, 0>(units);
    RowScales<S> scales;
    scales.scale[0] = _mm512_cvtph_ps(_mm512_castsi512_si256(words));
    if constexpr (kForm == CodeForm::minimum) {
      scales.minimum = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(words, 1));
    }
    return scales;
  }
};

template <CodeForm kFormOf, int kBlockBytes, int kCodesAt, int kOffsetOf>
struct FourBitRow : QuadsRow<kFormOf, kBlockBytes> {
  static constexpr int kOffset = kOffsetOf;
  template <class Units>
  static void read_codes(const Units& units, __m512i codes[8]) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) read_nibbles<kCodesAt>(units, i, codes + 2 * i);
  }
};

using Q4_0Row = FourBitRow<CodeForm::signed_codes, 18, 2, 8>;
using Q4_1Row = FourBitRow<CodeForm::minimum, 20, 4, 0>;

// The fifth bits stand in the 4 bytes before the nibbles. Integer instructions make masks of them,
// beside the vector instructions that the rest waits for.
template <CodeForm kFormOf, int kBlockBytes, int kBitsAt, int kOffsetOf>
struct FiveBitRow : QuadsRow<kFormOf, kBlockBytes> {
  static constexpr int kOffset = kOffsetOf;
  template <class Units>
  static void read_codes(const Units& units, __m512i codes[8]) {
    const __m512i sixteen = _mm512_set1_epi8(16);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const auto bits = [&](int block) {
        std::uint32_t word = 0;
        __builtin_memcpy(&word, units.block(i, block) + kBitsAt, sizeof word);
        return std::uint64_t{word};
      };
      const std::uint64_t first = bits(0) | bits(1) << 32;
      const std::uint64_t last = bits(2) | bits(3) << 32;
      // Of one half of the four blocks.
      const auto set = [&](std::uint64_t halves) {
        return _cvtu64_mask64(_pext_u64(first, halves) | _pext_u64(last, halves) << 32);
      };
      __m512i* out = codes + 2 * i;
      read_nibbles<kBitsAt + 4>(units, i, out);
      out[0] = _mm512_mask_add_epi8(out[0], set(0x0000FFFF0000FFFF), out[0], sixteen);
      out[1] = _mm512_mask_add_epi8(out[1], set(0xFFFF0000FFFF0000), out[1], sixteen);
    }
  }
};

using Q5_0Row = FiveBitRow<CodeForm::signed_codes, 22, 2, 16>;
using Q5_1Row = FiveBitRow<CodeForm::minimum, 24, 4, 0>;

// Nibbles that stand for values of a table.
template <const std::int8_t (&kValues)[16], int kOffset>
inline void look_up(__m512i codes[8]) {
  const __m512i table =
      _mm512_add_epi8(Avx512::table(kValues), _mm512_set1_epi8(static_cast<char>(kOffset)));
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) codes[i] = _mm512_shuffle_epi8(table, codes[i]);
}

struct Iq4NlRow : FourBitRow<CodeForm::signed_codes, 18, 2, kCodeOffset> {
  template <class Units>
  static void read_codes(const Units& units, __m512i codes[8]) {
    FourBitRow::read_codes(units, codes);
    look_up<kIq4CodeValues, kOffset>(codes);
  }
};

struct Mxfp4Row : FourBitRow<CodeForm::signed_codes, 17, 1, 12> {
  template <class Units>
  static void read_codes(const Units& units, __m512i codes[8]) {
    FourBitRow::read_codes(units, codes);
    look_up<kMxfp4CodeValues, kOffset>(codes);
  }
  template <class Units>
  static RowScales<S> read_scales(const Units& units) {
    const __m512i words = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(read_words<17, 0>(units)));
    // Blocks 1 and 3 of a quad begin within a word.
    const __m512i shift = _mm512_setr_epi32(0, 0, 0, 0, 8, 8, 8, 8, 0, 0, 0, 0, 8, 8, 8, 8);
    RowScales<S> scales;
    scales.scale[0] = exponent_scale<Avx512>(
        _mm512_and_si512(_mm512_srlv_epi32(words, shift), _mm512_set1_epi32(0xFF)));
    return scales;
  }
};

}  // namespace
}  // namespace edgerunner::cpu
