#pragma once

// The row kernels' formats whose blocks hold 256 weights: a group is one of them.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/avx2/row_blocks32.h"
#include "backend/cpu/kernels/avx2/row_layout.h"
#include "backend/cpu/kernels/avx2/simd.h"
#include "backend/cpu/kernels/codes.h"
#include "backend/cpu/kernels/row_format.h"

namespace edgerunner::cpu {
namespace {

template <CodeForm kFormOf, int kBlockBytes, bool kSigned, int kOffsetOf, bool kHalfCodesOf>
struct KRow {
  using S = Avx2;
  using Codes = Avx2::Codes;
  using Layout = BlocksLayout;
  static constexpr CodeForm kForm = kFormOf;
  static constexpr std::uint32_t kUnit = 8;
  static constexpr std::size_t kUnitBytes = kBlockBytes;
  static constexpr int kOffset = kOffsetOf;
  static constexpr bool kSignedCodes = kSigned;
  static constexpr bool kHalfCodes = kHalfCodesOf;
};

inline __m256i bytes_and(__m256i bytes, int mask) {
  return _mm256_and_si256(bytes, _mm256_set1_epi8(static_cast<char>(mask)));
}
// The bits of `mask`, which begin at bit `to`, from those that begin at bit `from` of each byte.
template <int kFrom, int kTo>
inline __m256i move_bits(__m256i bytes, int mask) {
  if constexpr (kFrom >= kTo) return bytes_and(_mm256_srli_epi16(bytes, kFrom - kTo), mask);
  return bytes_and(_mm256_slli_epi16(bytes, kTo - kFrom), mask);
}

inline __m256 half_of(const std::uint8_t* p) {
  std::int16_t word = 0;
  __builtin_memcpy(&word, p, sizeof word);
  return _mm256_cvtph_ps(_mm_set1_epi16(word));
}
inline __m256 scaled(__m256 factor, __m256i codes) {
  return _mm256_mul_ps(factor, _mm256_cvtepi32_ps(codes));
}

// The packed scales and minima of Q4_K and Q5_K.
inline RowScales<Avx2> packed_scales(const std::uint8_t* block) {
  const __m128i head = load16(block);  // d, dmin, then 12 bytes
  const __m128i low = _mm_or_si128(
      _mm_shuffle_epi8(head,
                       _mm_setr_epi8(4, 5, 6, 7, 12, 13, 14, 15, 8, 9, 10, 11, -1, -1, -1, -1)),
      _mm_shuffle_epi8(_mm_srli_epi16(head, 4), _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1,
                                                              -1, -1, -1, 12, 13, 14, 15)));
  const __m128i high = _mm_shuffle_epi8(
      head, _mm_setr_epi8(-1, -1, -1, -1, 4, 5, 6, 7, -1, -1, -1, -1, 8, 9, 10, 11));
  const __m128i bytes = _mm_or_si128(
      _mm_and_si128(low, _mm_setr_epi32(0x3F3F3F3F, 0x0F0F0F0F, 0x3F3F3F3F, 0x0F0F0F0F)),
      _mm_and_si128(_mm_srli_epi16(high, 2), _mm_set1_epi8(0x30)));
  RowScales<Avx2> scales;
  scales.scale[0] = scaled(half_of(block), _mm256_cvtepu8_epi32(bytes));
  scales.minimum =
      scaled(Avx2::negate(half_of(block + 2)), _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)));
  return scales;
}

struct Q4KRow : KRow<CodeForm::minimum, 144, false, 0, false> {
  template <class Units>
  static void read_codes(const Units& units, Codes codes[8]) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m256i bytes = load32(units(0) + 16 + 32 * i);
      codes[2 * i] = unsigned_codes(bytes_and(bytes, 0x0F));
      codes[2 * i + 1] = unsigned_codes(move_bits<4, 0>(bytes, 0x0F));
    }
  }
  template <class Units>
  static RowScales<S> read_scales(const Units& units) {
    return packed_scales(units(0));
  }
};

struct Q5KRow : KRow<CodeForm::minimum, 176, false, 0, false> {
  template <class Units>
  static void read_codes(const Units& units, Codes codes[8]) {
    const __m256i high = load32(units(0) + 16);  // bit j: of block j
    const auto set = [&](int j, __m256i low, __m256i fifth) {
      codes[j] = unsigned_codes(_mm256_or_si256(low, fifth));
    };
    const auto bytes = [&](int i) { return load32(units(0) + 48 + 32 * i); };
    set(0, bytes_and(bytes(0), 0x0F), move_bits<0, 4>(high, 16));
    set(1, move_bits<4, 0>(bytes(0), 0x0F), move_bits<1, 4>(high, 16));
    set(2, bytes_and(bytes(1), 0x0F), move_bits<2, 4>(high, 16));
    set(3, move_bits<4, 0>(bytes(1), 0x0F), move_bits<3, 4>(high, 16));
    set(4, bytes_and(bytes(2), 0x0F), move_bits<4, 4>(high, 16));
    set(5, move_bits<4, 0>(bytes(2), 0x0F), move_bits<5, 4>(high, 16));
    set(6, bytes_and(bytes(3), 0x0F), move_bits<6, 4>(high, 16));
    set(7, move_bits<4, 0>(bytes(3), 0x0F), move_bits<7, 4>(high, 16));
  }
  template <class Units>
  static RowScales<S> read_scales(const Units& units) {
    return packed_scales(units(0));
  }
};

struct Q6KRow : KRow<CodeForm::half_scales, 210, false, 32, false> {
  template <class Units>
  static void read_codes(const Units& units, Codes codes[8]) {
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      const __m256i first = load32(units(0) + 64 * h);
      const __m256i second = load32(units(0) + 64 * h + 32);
      const __m256i high = load32(units(0) + 128 + 32 * h);
      const auto set = [&](int j, __m256i low, __m256i bits) {
        codes[4 * h + j] = unsigned_codes(_mm256_or_si256(low, bits));
      };
      set(0, bytes_and(first, 0x0F), move_bits<0, 4>(high, 0x30));
      set(1, bytes_and(second, 0x0F), move_bits<2, 4>(high, 0x30));
      set(2, move_bits<4, 0>(first, 0x0F), move_bits<4, 4>(high, 0x30));
      set(3, move_bits<4, 0>(second, 0x0F), move_bits<6, 4>(high, 0x30));
    }
  }
  template <class Units>
  static RowScales<S> read_scales(const Units& units) {
    const __m128i bytes =
        _mm_shuffle_epi8(load16(units(0) + 192),
                         _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
    const __m256 d = half_of(units(0) + 208);
    RowScales<S> scales;
    scales.scale[0] = scaled(d, _mm256_cvtepi8_epi32(bytes));
    scales.scale[1] = scaled(d, _mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)));
    return scales;
  }
};

// Block 4h + s has bits 2s and 2s + 1 of the h-th 32 bytes.
inline void two_bit_fields(const std::uint8_t* p, __m256i out[8]) {
#pragma GCC unroll 2
  for (int h = 0; h < 2; ++h) {
    const __m256i bytes = load32(p + 32 * h);
    out[4 * h] = bytes_and(bytes, 3);
    out[4 * h + 1] = move_bits<2, 0>(bytes, 3);
    out[4 * h + 2] = move_bits<4, 0>(bytes, 3);
    out[4 * h + 3] = move_bits<6, 0>(bytes, 3);
  }
}

struct Q2KRow : KRow<CodeForm::half_minima, 84, false, 0, true> {
  template <class Units>
  static void read_codes(const Units& units, Codes codes[8]) {
    __m256i fields[8];
    two_bit_fields(units(0) + 16, fields);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) codes[i] = unsigned_codes(fields[i]);
  }
  template <class Units>
  static RowScales<S> read_scales(const Units& units) {
    const __m128i bytes = load16(units(0));
    const __m128i low = _mm_set1_epi8(0x0F);
    RowScales<S> scales;
    scales.half_codes = _mm256_cvtepu8_epi16(_mm_and_si128(bytes, low));
    scales.minimum_codes = _mm256_cvtepu8_epi16(_mm_and_si128(_mm_srli_epi16(bytes, 4), low));
    scales.scale[0] = half_of(units(0) + 80);
    scales.minimum = Avx2::negate(half_of(units(0) + 82));
    return scales;
  }
};

struct Q3KRow : KRow<CodeForm::signed_codes, 110, false, 4, true> {
  template <class Units>
  static void read_codes(const Units& units, Codes codes[8]) {
    __m256i fields[8];
    two_bit_fields(units(0) + 32, fields);
    const __m256i third = load32(units(0));  // bit j: of block j
    const auto set = [&](int j, __m256i bit) {
      codes[j] = unsigned_codes(_mm256_or_si256(fields[j], bit));
    };
    set(0, move_bits<0, 2>(third, 4));
    set(1, move_bits<1, 2>(third, 4));
    set(2, move_bits<2, 2>(third, 4));
    set(3, move_bits<3, 2>(third, 4));
    set(4, move_bits<4, 2>(third, 4));
    set(5, move_bits<5, 2>(third, 4));
    set(6, move_bits<6, 2>(third, 4));
    set(7, move_bits<7, 2>(third, 4));
  }
  template <class Units>
  static RowScales<S> read_scales(const Units& units) {
    const __m128i head = load16(units(0) + 94);  // two bytes early, to end within the block
    const __m128i low = _mm_or_si128(
        _mm_shuffle_epi8(head,
                         _mm_setr_epi8(2, 3, 4, 5, 6, 7, 8, 9, -1, -1, -1, -1, -1, -1, -1, -1)),
        _mm_shuffle_epi8(_mm_srli_epi16(head, 4),
                         _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, 2, 3, 4, 5, 6, 7, 8, 9)));
    const __m128i quads =
        _mm_shuffle_epi8(head, _mm_set1_epi32(0x0D0C0B0A));  // two bits more of scales j, j + 4...
    const __m128i high = _mm_blend_epi32(
        _mm_blend_epi32(quads, _mm_srli_epi16(quads, 2), 0x2),
        _mm_blend_epi32(_mm_srli_epi16(quads, 4), _mm_srli_epi16(quads, 6), 0x8), 0xC);
    const __m128i biased = _mm_or_si128(_mm_and_si128(low, _mm_set1_epi8(0x0F)),
                                        _mm_slli_epi16(_mm_and_si128(high, _mm_set1_epi8(3)), 4));
    // Negated, as the scale: see read() of Q3_K in codes.cc.
    RowScales<S> scales;
    scales.half_codes = _mm256_cvtepi8_epi16(_mm_sub_epi8(_mm_set1_epi8(32), biased));
    scales.scale[0] = Avx2::negate(half_of(units(0) + 108));
    return scales;
  }
};

struct Iq4XsRow : KRow<CodeForm::signed_codes, 136, true, 0, false> {
  template <class Units>
  static void read_codes(const Units& units, Codes codes[8]) {
    const __m256i table = Avx2::table(kIq4CodeValues);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      codes[i] = signed_codes(_mm256_shuffle_epi8(table, nibbles(units(0) + 8 + 16 * i)));
    }
  }
  template <class Units>
  static RowScales<S> read_scales(const Units& units) {
    std::uint16_t high = 0;
    std::int32_t low = 0;
    __builtin_memcpy(&high, units(0) + 2, sizeof high);
    __builtin_memcpy(&low, units(0) + 4, sizeof low);
    const __m256i block = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i two =
        _mm256_and_si256(_mm256_srlv_epi32(_mm256_set1_epi32(high), _mm256_slli_epi32(block, 1)),
                         _mm256_set1_epi32(3));
    const __m256i four =
        _mm256_and_si256(_mm256_srlv_epi32(_mm256_set1_epi32(low), _mm256_slli_epi32(block, 2)),
                         _mm256_set1_epi32(0x0F));
    const __m256i biased = _mm256_or_si256(four, _mm256_slli_epi32(two, 4));
    RowScales<S> scales;
    scales.scale[0] = scaled(half_of(units(0)), _mm256_sub_epi32(biased, _mm256_set1_epi32(32)));
    return scales;
  }
};

}  // namespace
}  // namespace edgerunner::cpu
