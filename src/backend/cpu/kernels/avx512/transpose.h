#pragma once

// From 16 weight rows in memory to vectors with a row a lane.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace edgerunner::cpu {
namespace {

// Lane l of the four 128-bit lanes of out[i] is lane i of in[l].
[[gnu::always_inline]] inline void transpose_quarters(const __m512i in[4], __m512i out[4]) {
  const __m512i a = _mm512_shuffle_i32x4(in[0], in[1], 0x88);  // in0: 0, 2; in1: 0, 2
  const __m512i b = _mm512_shuffle_i32x4(in[0], in[1], 0xDD);  // in0: 1, 3; in1: 1, 3
  const __m512i c = _mm512_shuffle_i32x4(in[2], in[3], 0x88);
  const __m512i d = _mm512_shuffle_i32x4(in[2], in[3], 0xDD);
  out[0] = _mm512_shuffle_i32x4(a, c, 0x88);
  out[1] = _mm512_shuffle_i32x4(b, d, 0x88);
  out[2] = _mm512_shuffle_i32x4(a, c, 0xDD);
  out[3] = _mm512_shuffle_i32x4(b, d, 0xDD);
}

// The same with 32-bit lanes within each quarter.
[[gnu::always_inline]] inline void transpose_within_quarters(const __m512i in[4], __m512i out[4]) {
  const __m512i a = _mm512_unpacklo_epi32(in[0], in[1]);
  const __m512i b = _mm512_unpackhi_epi32(in[0], in[1]);
  const __m512i c = _mm512_unpacklo_epi32(in[2], in[3]);
  const __m512i d = _mm512_unpackhi_epi32(in[2], in[3]);
  out[0] = _mm512_unpacklo_epi64(a, c);
  out[1] = _mm512_unpackhi_epi64(a, c);
  out[2] = _mm512_unpacklo_epi64(b, d);
  out[3] = _mm512_unpackhi_epi64(b, d);
}

// 16 and 32 bytes of each of 16 rows become four and eight vectors of 32-bit columns, in eight
// parts that can stand between work which takes other ports.
struct Columns4InParts {
  __m512i in[4];   // quarter j of in[i] is row 4j + i
  __m512i out[4];  // after part 3

  template <class Rows>
  [[gnu::always_inline]] void read(int part, const Rows& rows, std::size_t offset) {
    const auto quarters = [&](int i) __attribute__((always_inline)) {
      const auto pair = [&](int j) __attribute__((always_inline)) {
        return _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(rows[4 * j + 4 + i] + offset),
                                   reinterpret_cast<const __m128i*>(rows[4 * j + i] + offset));
      };
      in[i] = _mm512_inserti64x4(_mm512_castsi256_si512(pair(0)), pair(2), 1);
    };
    if (part < 2) {
      quarters(2 * part);
      quarters(2 * part + 1);
    } else if (part == 3) {
      transpose_within_quarters(in, out);
    }
  }
};
struct Columns8InParts {
  __m512i in[4];  // half j of in[i] is row 4j + i, in part 2 row 4j + 8 + i
  __m512i a[4];   // quarter 2j + h of a[c] is column 4h + c of rows 4j to 4j + 3
  __m512i b[4];   // the same of the last eight rows

  // Parts 4 + c complete columns c and 4 + c.
  template <class Rows>
  [[gnu::always_inline]] void read(int part, const Rows& rows, std::size_t offset) {
    const auto row = [&](int r) __attribute__((always_inline)) {
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[r] + offset));
    };
    if (part == 0 || part == 2) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const int r = 4 * part + i;
        in[i] = _mm512_inserti64x4(_mm512_castsi256_si512(row(r)), row(r + 4), 1);
      }
    } else if (part < 4) {
      transpose_within_quarters(in, part == 1 ? a : b);
    }
  }
  __m512i low(int c) const { return _mm512_shuffle_i32x4(a[c], b[c], 0x88); }
  __m512i high(int c) const { return _mm512_shuffle_i32x4(a[c], b[c], 0xDD); }
};

// 16 bytes at `offset` of each of 16 rows, as four vectors of 32-bit columns.
template <class Rows>
[[gnu::always_inline]] inline void load_columns4(const Rows& rows, std::size_t offset,
                                                 __m512i out[4]) {
  Columns4InParts columns;
#pragma GCC unroll 4
  for (int part = 0; part < 4; ++part) columns.read(part, rows, offset);
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) out[c] = columns.out[c];
}

// 32 bytes, as eight.
template <class Rows>
[[gnu::always_inline]] inline void load_columns8(const Rows& rows, std::size_t offset,
                                                 __m512i out[8]) {
  Columns8InParts columns;
#pragma GCC unroll 4
  for (int part = 0; part < 4; ++part) columns.read(part, rows, offset);
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    out[c] = columns.low(c);
    out[4 + c] = columns.high(c);
  }
}

// A square of 32-bit words: lane l of out[c] is word c of the vector row(l).
template <class Row>
[[gnu::always_inline]] inline void transpose_square(const Row& row, __m512i out[16]) {
  __m512i columns[4][4];  // [i][c]: quarter j holds column 4j + c of rows 4i to 4i + 3
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    __m512i in[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) in[r] = row(4 * i + r);
    transpose_within_quarters(in, columns[i]);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512i in[4] = {columns[0][c], columns[1][c], columns[2][c], columns[3][c]};
    __m512i column[4];
    transpose_quarters(in, column);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) out[4 * j + c] = column[j];
  }
}

// Words of 64 bytes at each of two places, the others zero. Results are joined, as words that are
// picked into one vector after the other would wait for each other.
inline __m512i pick_words(__m512i index, __mmask32 mask, const std::uint8_t* first,
                          const std::uint8_t* second) {
  return _mm512_maskz_permutex2var_epi16(mask, _mm512_loadu_si512(first), index,
                                         _mm512_loadu_si512(second));
}
inline __m512i join(__m512i a, __m512i b, __m512i c, __m512i d) {
  return _mm512_or_si512(_mm512_ternarylogic_epi64(a, b, c, 0xFE), d);
}

// The 16-bit words that hold byte `kAt` of four consecutive blocks of 16 rows: out[g] has them of
// rows 4g to 4g + 3, row by row within a block. Each row's four blocks are covered by one or two
// loads of 64 bytes that end within them.
template <int kBytes, int kAt, class Rows>
[[gnu::always_inline]] inline void load_block_words(const Rows& rows, std::size_t offset,
                                                    __m256i out[4]) {
  static_assert(4 * kBytes >= 64);
  constexpr bool kOneLoad = 3 * kBytes + kAt + 2 <= 64;
  constexpr int kSecond = 2 * kBytes < 4 * kBytes - 64 ? 2 * kBytes : 4 * kBytes - 64;
  constexpr int kBase = kOneLoad ? 0 : kSecond;
  constexpr int kWord0 = kAt / 2;
  constexpr int kWord1 = (kBytes + kAt) / 2;
  constexpr int kWord2 = (2 * kBytes + kAt - kBase) / 2;
  constexpr int kWord3 = (3 * kBytes + kAt - kBase) / 2;
  const auto four = [](int word) { return word * std::int64_t{0x0001000100010001}; };
#pragma GCC unroll 4
  for (int g = 0; g < 4; ++g) {
    const auto row = [&](int i) __attribute__((always_inline)) { return rows[4 * g + i] + offset; };
    __m512i words;
    if constexpr (kOneLoad) {  // of two rows at once, in even and odd words
      constexpr std::int64_t kOdd = 0x0020000000200000;
      const __m512i index = _mm512_setr_epi64(four(kWord0) + kOdd, four(kWord1) + kOdd,
                                              four(kWord2) + kOdd, four(kWord3) + kOdd, 0, 0, 0, 0);
      words = _mm512_or_si512(pick_words(index, 0x3333, row(0), row(1)),
                              pick_words(index, 0xCCCC, row(2), row(3)));
    } else {
      const __m512i index = _mm512_setr_epi64(four(kWord0), four(kWord1), four(32 + kWord2),
                                              four(32 + kWord3), 0, 0, 0, 0);
      const auto picked = [&](int i) __attribute__((always_inline)) {
        return pick_words(index, 0x1111U << i, row(i), row(i) + kSecond);
      };
      words = join(picked(0), picked(1), picked(2), picked(3));
    }
    out[g] = _mm512_castsi512_si256(words);
  }
}

}  // namespace
}  // namespace edgerunner::cpu
