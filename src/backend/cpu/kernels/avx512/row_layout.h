#pragma once

// How codes stand in vectors of 64 bytes for the row kernels, and the reduction of their products
// to one integer a block.

#include <immintrin.h>

#include <cstdint>

#include "backend/cpu/kernels/avx512/simd.h"
#include "backend/cpu/kernels/row_group.h"

namespace edgerunner::cpu {
namespace {

inline __m128i load16(const std::uint8_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
inline __m256i load32(const std::uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

// Nibbles that stand for values of a table.
template <const std::int8_t (&kValues)[16], int kOffset>
inline void look_up(__m512i codes[8]) {
  const __m512i table =
      _mm512_add_epi8(Avx512::table(kValues), _mm512_set1_epi8(static_cast<char>(kOffset)));
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) codes[i] = _mm512_shuffle_epi8(table, codes[i]);
}

// Lane i of each quarter of the result is the sum of that quarter of in[i].
[[gnu::always_inline]] inline __m512i sum_quarters(const __m512i in[4]) {
  const auto add_pair = [](__m512i a, __m512i b) {
    return _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
  };
  const __m512i low = add_pair(in[0], in[1]);  // in each quarter: 0, 1, 0, 1
  const __m512i high = add_pair(in[2], in[3]);
  return _mm512_add_epi32(_mm512_unpacklo_epi64(low, high), _mm512_unpackhi_epi64(low, high));
}

inline __m512i multiply_codes(__m512i sum, __m512i codes, const std::int8_t* q) {
  return _mm512_dpbusd_epi32(sum, codes, _mm512_load_si512(q));
}

// Two blocks a vector: the j-th vector of each half group holds kOrder[j] and that plus kDistance.
template <int kDistance, int k0, int k1, int k2, int k3>
struct PairsLayout {
  static constexpr int kOrder[4] = {k0, k1, k2, k3};
  static constexpr int block_of_piece(int v, int piece) {
    return v / 4 * 8 + kOrder[v % 4] + piece / 2 * kDistance;
  }
  static constexpr int half_of_piece(int, int piece) { return piece % 2; }
  static constexpr int block_of_lane(int lane) {
    return lane / 8 * 8 + kOrder[lane % 4] + lane / 4 % 2 * kDistance;
  }

  // Of the first and of the second halves of the blocks.
  template <class Format>
  [[gnu::always_inline]] static void half_dots(const __m512i* codes, const RowGroup<Avx512>& x,
                                               __m512i out[2]) {
    sums_of_halves(codes, x, out);
    if constexpr (Format::kOffset != 0) {
      for (int h = 0; h < 2; ++h) {
        out[h] = _mm512_sub_epi32(out[h], _mm512_load_si512(x.offset[h]));
      }
    }
  }
  template <class Format>
  [[gnu::always_inline]] static __m512i dots(const __m512i* codes, const RowGroup<Avx512>& x) {
    __m512i halves[2];
    sums_of_halves(codes, x, halves);
    const __m512i sum = _mm512_add_epi32(halves[0], halves[1]);
    if constexpr (Format::kOffset == 0) return sum;
    return _mm512_sub_epi32(sum, _mm512_load_si512(x.offset[0]));
  }

 private:
  [[gnu::always_inline]] static void sums_of_halves(const __m512i* codes, const RowGroup<Avx512>& x,
                                                    __m512i out[2]) {
    __m512i products[8];
#pragma GCC unroll 8
    for (int v = 0; v < 8; ++v) {
      products[v] = multiply_codes(_mm512_setzero_si512(), codes[v], x.q[v]);
    }
    const __m512i first = sum_quarters(products);
    const __m512i second = sum_quarters(products + 4);
    out[0] = _mm512_shuffle_i32x4(first, second, 0x88);
    out[1] = _mm512_shuffle_i32x4(first, second, 0xDD);
  }
};

// Blocks in their order, and the order that fields of two bits suggest.
using AdjacentPairs = PairsLayout<1, 0, 2, 4, 6>;
using FieldPairs = PairsLayout<4, 0, 1, 2, 3>;

// Four blocks a pair of vectors: the first halves in one, the second in the other.
struct QuadsLayout {
  static constexpr int block_of_piece(int v, int piece) { return v / 2 * 4 + piece; }
  static constexpr int half_of_piece(int v, int) { return v % 2; }
  static constexpr int block_of_lane(int lane) { return lane % 4 * 4 + lane / 4; }

  template <class Format>
  [[gnu::always_inline]] static __m512i dots(const __m512i* codes, const RowGroup<Avx512>& x) {
    __m512i products[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      products[i] = multiply_codes(_mm512_setzero_si512(), codes[2 * i], x.q[2 * i]);
      products[i] = multiply_codes(products[i], codes[2 * i + 1], x.q[2 * i + 1]);
    }
    const __m512i sum = sum_quarters(products);
    if constexpr (Format::kOffset == 0) return sum;
    return _mm512_sub_epi32(sum, _mm512_load_si512(x.offset[0]));
  }
};

}  // namespace
}  // namespace edgerunner::cpu
