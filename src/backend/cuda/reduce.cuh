#pragma once

namespace edgerunner::cuda {

// Sums over a warp and over a block of kThreads; every thread gets the result, and the order of the
// additions is always the same. `scratch` has room for kThreads / 32 floats.
__device__ inline float warp_sum(float x) {
  for (int distance = 16; distance > 0; distance >>= 1) {
    x += __shfl_xor_sync(0xFFFFFFFFU, x, distance);
  }
  return x;
}

__device__ inline float warp_max(float x) {
  for (int distance = 16; distance > 0; distance >>= 1) {
    x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFU, x, distance));
  }
  return x;
}

// The sum of a block's values. `scratch` has room for a float of each of its `warps`.
__device__ inline float block_sum(float x, float* scratch, unsigned warps = blockDim.x / 32) {
  x = warp_sum(x);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = x;
  __syncthreads();
  float sum = 0;
  for (unsigned i = 0; i < warps; ++i) sum += scratch[i];
  return sum;
}
template <int kThreads>
__device__ float block_sum(float x, float* scratch) {
  return block_sum(x, scratch, kThreads / 32);
}

// The largest of a block's values, none negative.
__device__ inline float block_max(float x, float* scratch, unsigned warps = blockDim.x / 32) {
  x = warp_max(x);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = x;
  __syncthreads();
  float largest = 0;
  for (unsigned i = 0; i < warps; ++i) largest = fmaxf(largest, scratch[i]);
  return largest;
}
template <int kThreads>
__device__ float block_max(float x, float* scratch) {
  return block_max(x, scratch, kThreads / 32);
}

}  // namespace edgerunner::cuda
