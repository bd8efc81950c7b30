#include "backend/cpu/kernels/peaks.h"

#include "backend/cpu/kernels/amx/tiles.h"

namespace edgerunner::cpu {
namespace {

constexpr double kTileOperations = 2.0 * 16 * 16;  // a column of the operands

// Four products side by side, beyond the latency of one.
int half_loop(long rounds) {
  const Tiles tiles;
  for (long n = 0; n < rounds; ++n) {  // the configuration has cleared all
    multiply_tiles<0, 4, 5>();
    multiply_tiles<1, 4, 5>();
    multiply_tiles<2, 4, 5>();
    multiply_tiles<3, 4, 5>();
  }
  alignas(64) float out[kTileRows * 16];
  store_tile<0>(out, 64);
  return out[0] > 0 ? 1 : 0;
}

}  // namespace

const PeakLoop kAmxPeak = {half_loop, kTileOperations * 32 * 4};

}  // namespace edgerunner::cpu
