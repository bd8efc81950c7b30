#pragma once

// How codes stand in vectors of 64 bytes for the row kernels, and the reduction of their products
// to one integer a block.

#include <immintrin.h>

#include <cstdint>

#include "backend/cpu/kernels/avx512/simd.h"
#include "backend/cpu/kernels/row_group.h"

namespace edgerunner::cpu {
namespace {

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

// Two blocks a vector, in their order.
struct AdjacentPairs {
  static constexpr int block_of_piece(int v, int piece) { return 2 * v + piece / 2; }
  static constexpr int half_of_piece(int, int piece) { return piece % 2; }
  static constexpr int block_of_lane(int lane) {
    return lane / 8 * 8 + 2 * (lane % 4) + lane / 4 % 2;
  }

  template <class Format>
  [[gnu::always_inline]] static __m512i dots(const __m512i* codes, const RowGroup<Avx512>& x) {
    __m512i products[8];
#pragma GCC unroll 8
    for (int v = 0; v < 8; ++v) {
      products[v] = multiply_codes(_mm512_setzero_si512(), codes[v], x.q[v]);
    }
    const __m512i first = sum_quarters(products);
    const __m512i second = sum_quarters(products + 4);
    const __m512i sum = _mm512_add_epi32(_mm512_shuffle_i32x4(first, second, 0x88),
                                         _mm512_shuffle_i32x4(first, second, 0xDD));
    if constexpr (Format::kOffset == 0) return sum;
    return _mm512_sub_epi32(sum, _mm512_load_si512(x.offset[0]));
  }
};

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
