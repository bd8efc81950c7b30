#pragma once

// How codes stand in vectors of 32 bytes for the row kernels, and the reduction of their products
// to one integer a block.

#include <immintrin.h>

#include <cstdint>

#include "backend/cpu/kernels/avx2/simd.h"
#include "backend/cpu/kernels/row_group.h"

namespace edgerunner::cpu {
namespace {

// A block a vector. A Format says by kSignedCodes whether its codes are signed.
struct BlocksLayout {
  static constexpr int block_of_piece(int v, int) { return v; }
  static constexpr int half_of_piece(int, int piece) { return piece; }
  static constexpr int block_of_lane(int lane) { return lane; }

  // Of the first and of the second halves of the blocks.
  template <class Format>
  static void half_dots(const Avx2::Codes* codes, const RowGroup<Avx2>& x, __m256i out[2]) {
    sums_of_halves<Format>(codes, x, out);
    if constexpr (Format::kOffset != 0) {
      for (int h = 0; h < 2; ++h) out[h] = _mm256_sub_epi32(out[h], load(x.offset[h]));
    }
  }
  template <class Format>
  static __m256i dots(const Avx2::Codes* codes, const RowGroup<Avx2>& x) {
    __m256i halves[2];
    sums_of_halves<Format>(codes, x, halves);
    const __m256i sum = _mm256_add_epi32(halves[0], halves[1]);
    if constexpr (Format::kOffset == 0) return sum;
    return _mm256_sub_epi32(sum, load(x.offset[0]));
  }

 private:
  static __m256i load(const void* p) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(p));
  }
  // Lane i of each half of the result is the sum of that half of in[i].
  static __m256i sum_halves(const __m256i in[4]) {
    return _mm256_hadd_epi32(_mm256_hadd_epi32(in[0], in[1]), _mm256_hadd_epi32(in[2], in[3]));
  }
  template <class Format>
  static void sums_of_halves(const Avx2::Codes* codes, const RowGroup<Avx2>& x, __m256i out[2]) {
    __m256i products[8];
#pragma GCC unroll 8
    for (int v = 0; v < 8; ++v) {
      products[v] = Avx2::dot<Format::kSignedCodes>(_mm256_setzero_si256(), codes[v], load(x.q[v]));
    }
    const __m256i first = sum_halves(products);
    const __m256i second = sum_halves(products + 4);
    out[0] = _mm256_permute2x128_si256(first, second, 0x20);
    out[1] = _mm256_permute2x128_si256(first, second, 0x31);
  }
};

}  // namespace
}  // namespace edgerunner::cpu
