#pragma once

#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstddef>

#include "backend/cuda/ops.h"

// Keys or values of the cache in any of its precisions.

namespace edgerunner::cuda {

// An e4m3 number has 4 bits of exponent and 3 of mantissa, the largest being 448. A head's values
// are scaled so that its largest becomes that: a value x is off by |x| / 16 at most, or by 2^-10 of
// 1/448 of the largest where it is far smaller.
inline constexpr float kLargestCode = 448.0F;
__device__ inline float code_scale(float largest) { return largest * (1.0F / kLargestCode); }

template <typename T>
struct CacheValues {
  static constexpr bool kScaled = sizeof(T) == 1;
  T* codes = nullptr;
  float* scales = nullptr;  // a position's and head's; where kScaled

  // The number at an index, to be multiplied with scale(index / head_dim).
  __device__ float load(std::size_t at) const { return static_cast<float>(codes[at]); }
  __device__ float scale(std::size_t row) const {
    if constexpr (kScaled) {
      return scales[row];
    } else {
      return 1.0F;
    }
  }
  __device__ void store(std::size_t at, float x, float scale) const {
    if constexpr (kScaled) {
      codes[at] = T(scale > 0 ? x / scale : 0.0F);
    } else if constexpr (sizeof(T) == 2) {
      codes[at] = __float2half_rn(x);
    } else {
      codes[at] = x;
    }
  }
};

// Calls visit(keys, values) with the CacheValues of a layer.
template <typename Visit>
void visit_cache(const DeviceCache& cache, Visit&& visit) {
  const auto with = [&]<typename T>(T* keys) {
    visit(CacheValues<T>{keys, cache.key_scales},
          CacheValues<T>{static_cast<T*>(cache.values), cache.value_scales});
  };
  if (cache.precision == KvPrecision::f16) {
    with(static_cast<__half*>(cache.keys));
  } else if (cache.precision == KvPrecision::f32) {
    with(static_cast<float*>(cache.keys));
  } else {
    with(static_cast<__nv_fp8_e4m3*>(cache.keys));
  }
}

}  // namespace edgerunner::cuda
