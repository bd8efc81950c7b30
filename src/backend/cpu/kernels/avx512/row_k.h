#pragma once

// The row kernels' formats whose blocks hold 256 weights: a group is two of them. Those that are
// missing are multiplied faster by the kernels that transpose them in registers.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/avx512/row_blocks32.h"
#include "backend/cpu/kernels/avx512/row_layout.h"
#include "backend/cpu/kernels/avx512/simd.h"
#include "backend/cpu/kernels/codes.h"
#include "backend/cpu/kernels/row_format.h"
#include "backend/cpu/kernels/unpack_blocks32.h"

namespace edgerunner::cpu {
namespace {

template <CodeForm kFormOf, int kBlockBytes, class LayoutOf, int kOffsetOf, bool kHalfCodesOf>
struct KRow {
  using S = Avx512;
  using Codes = __m512i;
  using Layout = LayoutOf;
  static constexpr CodeForm kForm = kFormOf;
  static constexpr std::uint32_t kUnit = 8;
  static constexpr std::size_t kUnitBytes = kBlockBytes;
  static constexpr int kOffset = kOffsetOf;
  static constexpr bool kHalfCodes = kHalfCodesOf;
};

inline __m512i load64(const std::uint8_t* p) { return _mm512_loadu_si512(p); }
inline __m512i low_nibbles(__m512i bytes) {
  return _mm512_and_si512(bytes, _mm512_set1_epi8(0x0F));
}
inline __m512i high_nibbles(__m512i bytes) { return low_nibbles(_mm512_srli_epi16(bytes, 4)); }

// codes | (bits & mask)
inline __m512i with_bits(__m512i codes, __m512i bits, int mask) {
  return _mm512_ternarylogic_epi32(codes, bits, _mm512_set1_epi8(static_cast<char>(mask)), 0xF8);
}

// 32 bytes twice, the words of each copy shifted by a count of its own; negative counts to the
// right.
template <int kFirst, int kSecond>
inline __m512i shift_copies(__m512i copies) {
  if constexpr (kFirst == kSecond && kFirst == 0) return copies;
  const auto counts = [](int first, int second) {
    return _mm512_inserti64x4(_mm512_set1_epi16(static_cast<short>(first)),
                              _mm256_set1_epi16(static_cast<short>(second)), 1);
  };
  static_assert((kFirst >= 0) == (kSecond >= 0) || kFirst == 0 || kSecond == 0);
  if constexpr (kFirst > 0 || kSecond > 0)
    return _mm512_sllv_epi16(copies, counts(kFirst, kSecond));
  return _mm512_srlv_epi16(copies, counts(-kFirst, -kSecond));
}

// 16 bytes of each of two units.
template <class Units>
inline __m256i load_heads(const Units& units, std::size_t at) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load16(units(0) + at)),
                                 load16(units(1) + at), 1);
}

// The f16 at `at` of two units, in the lanes of each.
template <class Units>
inline __m512 load_unit_halves(const Units& units, std::size_t at) {
  std::int16_t words[2];
  for (int i = 0; i < 2; ++i) __builtin_memcpy(&words[i], units(i) + at, sizeof words[i]);
  return _mm512_cvtph_ps(
      _mm256_inserti128_si256(_mm256_set1_epi16(words[0]), _mm_set1_epi16(words[1]), 1));
}

// Bytes 0 to 7 of each half in the lower half, 8 to 15 in the upper.
inline __m256i split_bytes(__m256i heads) { return _mm256_permute4x64_epi64(heads, 0xD8); }

inline __m512 negate(__m512 x) { return Avx512::negate(x); }

struct Q6KRow : KRow<CodeForm::half_scales, 210, AdjacentPairs, 32, false> {
  template <class Units>
  static void read_codes(const Units& units, __m512i codes[8]) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const std::uint8_t* block = units(i / 2);
      const __m512i bytes = load64(block + 64 * (i % 2));
      const __m512i high = _mm512_broadcast_i64x4(load32(block + 128 + 32 * (i % 2)));
      codes[2 * i] = with_bits(low_nibbles(bytes), shift_copies<4, 2>(high), 0x30);
      codes[2 * i + 1] = with_bits(high_nibbles(bytes), shift_copies<0, -2>(high), 0x30);
    }
  }
  template <class Units>
  static RowScales<S> read_scales(const Units& units) {
    // The scales of the first halves of blocks 0, 2, 4, 6, 1, 3, 5, 7, then those of the second.
    const __m256i bytes = split_bytes(_mm256_shuffle_epi8(
        load_heads(units, 192), _mm256_broadcastsi128_si256(_mm_setr_epi8(
                                    0, 4, 8, 12, 2, 6, 10, 14, 1, 5, 9, 13, 3, 7, 11, 15))));
    const __m512 d = load_unit_halves(units, 208);
    const auto scaled = [&](__m128i codes) {
      return _mm512_mul_ps(d, _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes)));
    };
    RowScales<S> scales;
    scales.scale[0] = scaled(_mm256_castsi256_si128(bytes));
    scales.scale[1] = scaled(_mm256_extracti128_si256(bytes, 1));
    return scales;
  }
};

struct Q3KRow : KRow<CodeForm::signed_codes, 110, FieldPairs, 4, true> {
  template <class Units>
  static void read_codes(const Units& units, __m512i codes[8]) {
    Avx512::I* out = codes;
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i, out += 4) {
      const __m512i bytes = load64(units(i) + 32);
      const __m512i copies = _mm512_broadcast_i64x4(load32(units(i)));
      // The third bits of blocks s and 4 + s, to be shifted by s more.
      const __m512i third =
          _mm512_mask_blend_epi64(0xF0, _mm512_slli_epi16(copies, 2), _mm512_srli_epi16(copies, 2));
#pragma GCC unroll 4
      for (int s = 0; s < 4; ++s) {
        const __m512i two = _mm512_and_si512(_mm512_srli_epi16(bytes, 2 * s), _mm512_set1_epi8(3));
        out[s] = with_bits(two, _mm512_srli_epi16(third, s), 4);
      }
    }
  }
  template <class Units>
  static RowScales<S> read_scales(const Units& units) {
    const __m256i heads = load_heads(units, 94);  // two bytes early, to end within the block
    const auto in_both = [](__m128i index) { return _mm256_broadcastsi128_si256(index); };
    __m256i low = _mm256_shuffle_epi8(
        heads, in_both(_mm_setr_epi8(2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5, 6, 7, 8, 9)));
    low = _mm256_and_si256(_mm256_srlv_epi16(low, in_both(_mm_setr_epi16(0, 0, 0, 0, 4, 4, 4, 4))),
                           _mm256_set1_epi8(0x0F));
    __m256i high = _mm256_shuffle_epi8(heads, in_both(_mm_set1_epi32(0x0D0C0B0A)));
    high = _mm256_srlv_epi16(high, in_both(_mm_setr_epi16(0, 0, 2, 2, 4, 4, 6, 6)));
    const __m256i biased =
        _mm256_ternarylogic_epi32(low, _mm256_slli_epi16(high, 4), _mm256_set1_epi8(0x30), 0xF8);
    // Negated, as the scale: see read_codes() of the portable kernels.
    RowScales<S> scales;
    scales.half_codes = _mm512_cvtepi8_epi16(_mm256_sub_epi8(_mm256_set1_epi8(32), biased));
    scales.scale[0] = negate(load_unit_halves(units, 108));
    return scales;
  }
};

struct Iq4XsRow : KRow<CodeForm::signed_codes, 136, QuadsLayout, kCodeOffset, false> {
  template <class Units>
  static void read_codes(const Units& units, __m512i codes[8]) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m512i bytes = load64(units(i / 2) + 8 + 64 * (i % 2));
      codes[2 * i] = low_nibbles(bytes);
      codes[2 * i + 1] = high_nibbles(bytes);
    }
    look_up<kIq4CodeValues, kOffset>(codes);
  }
  template <class Units>
  static RowScales<S> read_scales(const Units& units) {
    std::int64_t heads[2];
    for (int i = 0; i < 2; ++i) __builtin_memcpy(&heads[i], units(i), sizeof heads[i]);
    const __m512i both = _mm512_castsi128_si512(_mm_set_epi64x(heads[1], heads[0]));
    // Lane l is block l / 4 + 4 * (l % 4), of unit l % 4 / 2.
    const __m512i unit = _mm512_set_epi32(2, 2, 0, 0, 2, 2, 0, 0, 2, 2, 0, 0, 2, 2, 0, 0);
    const __m512i block = _mm512_setr_epi32(0, 4, 0, 4, 1, 5, 1, 5, 2, 6, 2, 6, 3, 7, 3, 7);
    const __m512i first = _mm512_permutexvar_epi32(unit, both);  // d and the high bits
    const __m512i lows =
        _mm512_permutexvar_epi32(_mm512_or_si512(unit, _mm512_set1_epi32(1)), both);
    const __m512i two = _mm512_and_si512(
        _mm512_srlv_epi32(_mm512_srli_epi32(first, 16), _mm512_slli_epi32(block, 1)),
        _mm512_set1_epi32(3));
    const __m512i four = _mm512_and_si512(_mm512_srlv_epi32(lows, _mm512_slli_epi32(block, 2)),
                                          _mm512_set1_epi32(0x0F));
    const __m512i biased = _mm512_or_si512(four, _mm512_slli_epi32(two, 4));
    RowScales<S> scales;
    scales.scale[0] =
        _mm512_mul_ps(Avx512::low_half(first),
                      _mm512_cvtepi32_ps(_mm512_sub_epi32(biased, _mm512_set1_epi32(32))));
    return scales;
  }
};

}  // namespace
}  // namespace edgerunner::cpu
