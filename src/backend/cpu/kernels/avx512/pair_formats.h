#pragma once

// The formats of pair_product.h, whose blocks hold 32 weights, 16 bytes of their nibbles among
// them. Each has
//   kForm; kBlockBytes; kOffset: what the codes are above the integers of the weights;
//   read_codes(rows, codes): codes of a pair of blocks of eight rows, those of the blocks' first
//   halves and of their second in turn, for four vectors of 16 bytes a block; read_scales(rows).

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/avx512/row_layout.h"
#include "backend/cpu/kernels/avx512/simd.h"
#include "backend/cpu/kernels/codes.h"
#include "backend/cpu/kernels/unpack_blocks32.h"

namespace edgerunner::cpu {
namespace {

// Beside the codes of a pair, by row, the first block's in the lower half.
struct PairScales {
  __m512 scale;
  __m512 minimum;  // CodeForm::minimum
};

// Two blocks of each of eight weight rows.
template <int kBlockBytes>
class PairOfRows {
 public:
  [[gnu::always_inline]] PairOfRows(const std::uint8_t* first, std::size_t row_bytes)
      : half_{first, first + 4 * row_bytes}, stride_(row_bytes), three_strides_(3 * row_bytes) {
    // Four registers and the constants of instructions are all that addresses need. Where compilers
    // may see how they depend on each other, they keep a sum for each load before the loop.
    asm volatile("" : "+r"(half_[0]), "+r"(half_[1]), "+r"(stride_), "+r"(three_strides_));
  }

  [[gnu::always_inline]] const std::uint8_t* block(int row, int b) const {
    const std::uint8_t* p = half_[row / 4] + b * kBlockBytes;
    return row % 4 == 0   ? p
           : row % 4 == 1 ? p + stride_
           : row % 4 == 2 ? p + 2 * stride_
                          : p + three_strides_;
  }
  // Vector i has rows i and 4 + i, the first blocks before the second.
  [[gnu::always_inline]] const std::uint8_t* piece(int i, int quarter) const {
    return block(i + quarter % 2 * 4, quarter / 2);
  }

 private:
  const std::uint8_t* half_[2];  // the first row of four
  std::size_t stride_;
  std::size_t three_strides_;
};

// Of the blocks of vector i, whose 16 bytes from kAt on hold the nibbles of 32 weights.
template <int kAt, class Rows>
[[gnu::always_inline]] inline void read_nibbles(const Rows& rows, int i, __m512i codes[2]) {
  const auto pair = [&](int quarter) __attribute__((always_inline)) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load16(rows.piece(i, quarter) + kAt)),
                                   load16(rows.piece(i, quarter + 1) + kAt), 1);
  };
  const __m512i bytes = _mm512_inserti64x4(_mm512_castsi256_si512(pair(0)), pair(2), 1);
  const __m512i low = _mm512_set1_epi8(0x0F);
  codes[0] = _mm512_and_si512(bytes, low);
  codes[1] = _mm512_and_si512(_mm512_srli_epi16(bytes, 4), low);
}

// The words that hold byte kAt of each block, by row, the first blocks' in the lower half.
template <int kAt, int kBlockBytes>
[[gnu::always_inline]] inline __m256i read_words(const PairOfRows<kBlockBytes>& rows) {
  constexpr short kFirst = kAt / 2;
  constexpr short kSecond = (kBlockBytes + kAt) / 2;
  static_assert(kSecond < 16);
  // Even lanes are of one row, odd ones of the next.
  const __m256i index = _mm256_setr_epi16(
      kFirst, kFirst + 16, kFirst, kFirst + 16, kFirst, kFirst + 16, kFirst, kFirst + 16, kSecond,
      kSecond + 16, kSecond, kSecond + 16, kSecond, kSecond + 16, kSecond, kSecond + 16);
  const auto two = [&](int row) __attribute__((always_inline)) {
    return _mm256_maskz_permutex2var_epi16(static_cast<__mmask16>(0x0303U << row),
                                           load32(rows.block(row, 0)), index,
                                           load32(rows.block(row + 1, 0)));
  };
  return _mm256_or_si256(_mm256_ternarylogic_epi64(two(0), two(2), two(4), 0xFE), two(6));
}

// A format whose blocks begin with an f16, or two.
template <CodeForm kFormOf, int kBlockBytesOf, int kOffsetOf>
struct NibblePairs {
  static constexpr CodeForm kForm = kFormOf;
  static constexpr int kBlockBytes = kBlockBytesOf;
  static constexpr int kOffset = kOffsetOf;
  static constexpr bool kFifthBits = false;

  template <class Rows>
  [[gnu::always_inline]] static PairScales read_scales(const Rows& rows) {
    PairScales scales;
    scales.scale = _mm512_cvtph_ps(read_words<0>(rows));
    if constexpr (kForm == CodeForm::minimum) {
      scales.minimum = _mm512_cvtph_ps(read_words<2>(rows));
    }
    return scales;
  }
};

template <CodeForm kFormOf, int kBlockBytes, int kCodesAt, int kOffsetOf>
struct FourBitPairs : NibblePairs<kFormOf, kBlockBytes, kOffsetOf> {
  template <class Rows>
  [[gnu::always_inline]] static void read_codes(const Rows& rows, __m512i codes[8]) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) read_nibbles<kCodesAt>(rows, i, codes + 2 * i);
  }
};

using Q4_0Pairs = FourBitPairs<CodeForm::signed_codes, 18, 2, 8>;
using Q4_1Pairs = FourBitPairs<CodeForm::minimum, 20, 4, 0>;

// The fifth bits stand in the 4 bytes before the nibbles. They are codes of their own: lane j of
// four has bits j of the four bytes, then bits 4 + j, both worth 2^j.
template <CodeForm kFormOf, int kBlockBytes, int kBitsAt, int kOffsetOf>
struct FiveBitPairs : NibblePairs<kFormOf, kBlockBytes, kOffsetOf> {
  static constexpr bool kFifthBits = true;

  template <class Rows>
  [[gnu::always_inline]] static void read_codes(const Rows& rows, __m512i codes[16]) {
    const __m512i bit =
        _mm512_broadcast_i32x4(_mm_setr_epi32(0x01010101, 0x02020202, 0x04040404, 0x08080808));
    // Both words of the bits of a block to all lanes of its quarter.
    constexpr int kFirst = kBitsAt / 2 * 0x10001 + 0x10000;
    constexpr int kSecond = kFirst + kBlockBytes / 2 * 0x10001;
    constexpr int kOther = 32 * 0x10001;  // words of the fifth row on come after those of the first
    static_assert((kBlockBytes + kBitsAt) / 2 + 1 < 16);
    const __m512i index =
        _mm512_setr_epi32(kFirst, kFirst, kFirst, kFirst, kFirst + kOther, kFirst + kOther,
                          kFirst + kOther, kFirst + kOther, kSecond, kSecond, kSecond, kSecond,
                          kSecond + kOther, kSecond + kOther, kSecond + kOther, kSecond + kOther);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      read_nibbles<kBitsAt + 4>(rows, i, codes + 2 * i);
      const __m512i bits =
          _mm512_permutex2var_epi16(_mm512_castsi256_si512(load32(rows.block(i, 0))), index,
                                    _mm512_castsi256_si512(load32(rows.block(4 + i, 0))));
      codes[8 + 2 * i] = _mm512_and_si512(bits, bit);
      codes[9 + 2 * i] = _mm512_and_si512(_mm512_srli_epi16(bits, 4), bit);
    }
  }
};

using Q5_0Pairs = FiveBitPairs<CodeForm::signed_codes, 22, 2, 16>;
using Q5_1Pairs = FiveBitPairs<CodeForm::minimum, 24, 4, 0>;

struct Iq4NlPairs : FourBitPairs<CodeForm::signed_codes, 18, 2, kCodeOffset> {
  template <class Rows>
  [[gnu::always_inline]] static void read_codes(const Rows& rows, __m512i codes[8]) {
    FourBitPairs::read_codes(rows, codes);
    look_up<kIq4CodeValues, kOffset>(codes);
  }
};

struct Mxfp4Pairs : FourBitPairs<CodeForm::signed_codes, 17, 1, 12> {
  template <class Rows>
  [[gnu::always_inline]] static void read_codes(const Rows& rows, __m512i codes[8]) {
    FourBitPairs::read_codes(rows, codes);
    look_up<kMxfp4CodeValues, kOffset>(codes);
  }
  template <class Rows>
  [[gnu::always_inline]] static PairScales read_scales(const Rows& rows) {
    const __m512i words = _mm512_cvtepu16_epi32(read_words<0>(rows));
    // Second blocks begin within a word.
    const __m512i shift = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi32(8), 1);
    PairScales scales;
    scales.scale = exponent_scale<Avx512>(
        _mm512_and_si512(_mm512_srlv_epi32(words, shift), _mm512_set1_epi32(0xFF)));
    return scales;
  }
};

}  // namespace
}  // namespace edgerunner::cpu
