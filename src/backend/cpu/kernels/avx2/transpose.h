#pragma once

// From 8 weight rows in memory to vectors with a row a lane.

#include <immintrin.h>

namespace edgerunner::cpu {
namespace {

// In each half, 32-bit lane l of out[i] is lane i of in[l].
inline void transpose_within_halves(const __m256i* in, __m256i* out) {
  const __m256i a = _mm256_unpacklo_epi32(in[0], in[1]);
  const __m256i b = _mm256_unpackhi_epi32(in[0], in[1]);
  const __m256i c = _mm256_unpacklo_epi32(in[2], in[3]);
  const __m256i d = _mm256_unpackhi_epi32(in[2], in[3]);
  out[0] = _mm256_unpacklo_epi64(a, c);
  out[1] = _mm256_unpackhi_epi64(a, c);
  out[2] = _mm256_unpacklo_epi64(b, d);
  out[3] = _mm256_unpackhi_epi64(b, d);
}

// Lane l of out[i] is lane i of in[l].
inline void transpose8(const __m256i* in, __m256i* out) {
  __m256i low[4];   // columns c and 4 + c of rows 0 to 3
  __m256i high[4];  // of rows 4 to 7
  transpose_within_halves(in, low);
  transpose_within_halves(in + 4, high);
  for (int c = 0; c < 4; ++c) {
    out[c] = _mm256_permute2x128_si256(low[c], high[c], 0x20);
    out[4 + c] = _mm256_permute2x128_si256(low[c], high[c], 0x31);
  }
}

}  // namespace
}  // namespace edgerunner::cpu
