#include "backend/cpu/kernels/peaks.h"

#include <immintrin.h>

namespace edgerunner::cpu {
namespace {

// 16 registers: as many sums as leave room for the operands.
constexpr int kAccumulators = 12;

int int8_loop(long rounds) {
  __m256i sums[kAccumulators];
  for (int i = 0; i < kAccumulators; ++i) sums[i] = _mm256_set1_epi32(i);
  __m256i x = _mm256_set1_epi32(0x01010101);
  const __m256i ones = _mm256_set1_epi16(1);
  for (long n = 0; n < rounds; ++n) {
#pragma GCC unroll 12
    for (int i = 0; i < kAccumulators; ++i) {
      __asm__ volatile("" : "+x"(x));  // each product anew
      sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(_mm256_maddubs_epi16(x, x), ones));
    }
  }
  int total[8] = {};
  auto* const to = reinterpret_cast<__m256i*>(total);
  for (const __m256i& sum : sums) {
    _mm256_storeu_si256(to, _mm256_add_epi32(_mm256_loadu_si256(to), sum));
  }
  return total[0];
}

int f32_loop(long rounds) {
  __m256 sums[kAccumulators];
  for (int i = 0; i < kAccumulators; ++i) sums[i] = _mm256_set1_ps(static_cast<float>(i));
  __m256 x = _mm256_set1_ps(0.5F);
  for (long n = 0; n < rounds; ++n) {
#pragma GCC unroll 12
    for (int i = 0; i < kAccumulators; ++i) sums[i] = _mm256_fmadd_ps(sums[i], x, x);
    __asm__ volatile("" : "+x"(x));
  }
  float total = 0;
  for (const __m256& sum : sums) total += _mm256_cvtss_f32(sum);
  return total > 0 ? 1 : 0;
}

}  // namespace

// There are no products of 16-bit floats: they are widened and go through the f32 units.
const PeakLoops kAvx2Peaks = {.int8 = {int8_loop, 64.0 * kAccumulators},
                              .half = {f32_loop, 16.0 * kAccumulators},
                              .f32 = {f32_loop, 16.0 * kAccumulators}};

}  // namespace edgerunner::cpu
