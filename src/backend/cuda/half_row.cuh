#pragma once

#include <cstdint>

#include "backend/cuda/prefill_ops.h"
#include "backend/cuda/reduce.cuh"

namespace edgerunner::cuda {

// The largest of a block's values, which are not negative. `scratch` as for block_sum.
template <int kThreads>
__device__ float block_max(float x, float* scratch) {
  x = warp_max(x);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = x;
  __syncthreads();
  float peak = 0;
  for (int i = 0; i < kThreads / 32; ++i) peak = fmaxf(peak, scratch[i]);
  return peak;
}

// A block writes a row of `to`, scaled as prefill_ops.h says. `at(i)` is the row's value at i,
// `peak` this thread's largest |at(i)| over its own i = threadIdx.x + n * kThreads.
template <int kThreads, typename At>
__device__ void write_half_row(const HalfRows& to, std::uint32_t row, std::uint32_t cols,
                               float peak, float* scratch, const At& at) {
  peak = block_max<kThreads>(peak, scratch);
  // 2^(10 - e) for a peak in [2^e, 2^(e+1)).
  const int exponent = peak > 0 ? ilogbf(peak) : 10;
  const float by = ldexpf(1.0F, 10 - exponent);
  __half* const out = to.x + static_cast<std::size_t>(row) * cols;
  for (std::uint32_t i = threadIdx.x; i < cols; i += kThreads) out[i] = __float2half_rn(at(i) * by);
  if (threadIdx.x == 0) to.scale[row] = ldexpf(1.0F, exponent - 10);
}

}  // namespace edgerunner::cuda
