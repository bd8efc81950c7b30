#pragma once

#include <cstdint>

#include "backend/cuda/norm.h"
#include "backend/cuda/reduce.cuh"

namespace edgerunner::cuda {

// What a row's elements are shifted and multiplied by to norm it.
struct RowNorm {
  float mean = 0;
  float scale = 1;

  // Element i of the normed row, made from element i of the row.
  __device__ float at(const Norm& norm, float x, std::uint32_t i) const {
    if (norm.weight == nullptr) return x;
    const float y = (x - mean) * scale * norm.weight[i];
    return norm.bias == nullptr ? y : y + norm.bias[i];
  }
};

// Of a row that a block of kThreads reads together. The mean is taken first and the squares of what
// is left after it, so that a large mean costs no digits.
template <int kThreads>
__device__ RowNorm row_norm(const Norm& norm, const float* x, std::uint32_t dim, float* scratch) {
  RowNorm result;
  if (norm.weight == nullptr) return result;
  const auto count = static_cast<float>(dim);
  if (norm.bias != nullptr) {
    float sum = 0;
    for (std::uint32_t i = threadIdx.x; i < dim; i += kThreads) sum += x[i];
    result.mean = block_sum<kThreads>(sum, scratch) / count;
  }
  float squares = 0;
  for (std::uint32_t i = threadIdx.x; i < dim; i += kThreads) {
    const float centred = x[i] - result.mean;
    squares = fmaf(centred, centred, squares);
  }
  squares = block_sum<kThreads>(squares, scratch);
  result.scale = 1.0F / sqrtf(squares / count + norm.epsilon);
  return result;
}

}  // namespace edgerunner::cuda
