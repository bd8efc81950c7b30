#pragma once

#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>

#include "backend/cuda/prefill_ops.h"

// Where the elements of rows of activations in f16 stand.

namespace edgerunner::cuda {

// Elements `col` and `col` + 1 of a row of `cols`; `col` is even.
__device__ inline void store_pair(const HalfRows& to, std::size_t row, std::uint32_t cols,
                                  std::uint32_t col, __half2 pair) {
  *reinterpret_cast<__half2*>(to.x + row * cols + column_place(to.order, col)) = pair;
}

}  // namespace edgerunner::cuda
