#include "backend/cpu/kernels/peaks.h"

#include <immintrin.h>

namespace edgerunner::cpu {
namespace {

// Enough to hide a latency of 4 to 6 cycles at two instructions a cycle.
constexpr int kAccumulators = 16;

int is_positive(const __m512* sums) {
  float total = 0;
  for (int i = 0; i < kAccumulators; ++i) total += _mm512_cvtss_f32(sums[i]);
  return total > 0 ? 1 : 0;
}

int int8_loop(long rounds) {
  __m512i sums[kAccumulators];
  for (int i = 0; i < kAccumulators; ++i) sums[i] = _mm512_set1_epi32(i);
  __m512i x = _mm512_set1_epi32(0x01010101);
  for (long n = 0; n < rounds; ++n) {
#pragma GCC unroll 16
    for (int i = 0; i < kAccumulators; ++i) sums[i] = _mm512_dpbusd_epi32(sums[i], x, x);
    __asm__ volatile("" : "+v"(x));
  }
  int total[16] = {};
  for (const __m512i& sum : sums) {
    _mm512_storeu_si512(total, _mm512_add_epi32(_mm512_loadu_si512(total), sum));
  }
  return total[0];
}

int half_loop(long rounds) {
  __m512 sums[kAccumulators];
  for (int i = 0; i < kAccumulators; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  __m512i x = _mm512_set1_epi32(0x3F803F80);
  for (long n = 0; n < rounds; ++n) {
#pragma GCC unroll 16
    for (int i = 0; i < kAccumulators; ++i) {
      sums[i] =
          _mm512_dpbf16_ps(sums[i], reinterpret_cast<__m512bh>(x), reinterpret_cast<__m512bh>(x));
    }
    __asm__ volatile("" : "+v"(x));
  }
  return is_positive(sums);
}

int f32_loop(long rounds) {
  __m512 sums[kAccumulators];
  for (int i = 0; i < kAccumulators; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  __m512 x = _mm512_set1_ps(0.5F);
  for (long n = 0; n < rounds; ++n) {
#pragma GCC unroll 16
    for (int i = 0; i < kAccumulators; ++i) sums[i] = _mm512_fmadd_ps(sums[i], x, x);
    __asm__ volatile("" : "+v"(x));
  }
  return is_positive(sums);
}

}  // namespace

const PeakLoops kAvx512Peaks = {.int8 = {int8_loop, 128.0 * kAccumulators},
                                .half = {half_loop, 64.0 * kAccumulators},
                                .f32 = {f32_loop, 32.0 * kAccumulators}};

}  // namespace edgerunner::cpu
