#include "backend/cpu/kernels/peaks.h"

#include <arm_neon.h>

namespace edgerunner::cpu {
namespace {

constexpr int kAccumulators = 16;

int int8_loop(long rounds) {
  int32x4_t sums[kAccumulators];
  for (int i = 0; i < kAccumulators; ++i) sums[i] = vdupq_n_s32(i);
  int8x16_t x = vdupq_n_s8(1);
  for (long n = 0; n < rounds; ++n) {
#pragma GCC unroll 16
    for (int i = 0; i < kAccumulators; ++i) sums[i] = vmmlaq_s32(sums[i], x, x);
    __asm__ volatile("" : "+w"(x));
  }
  int total = 0;
  for (const int32x4_t& sum : sums) total ^= vaddvq_s32(sum);
  return total;
}

int f32_loop(long rounds) { return kNeonPeaks.f32.run(rounds); }

}  // namespace

const PeakLoops kNeonI8mmPeaks = {.int8 = {int8_loop, 64.0 * kAccumulators},
                                  .half = {f32_loop, 8.0 * kAccumulators},
                                  .f32 = {f32_loop, 8.0 * kAccumulators}};

}  // namespace edgerunner::cpu
