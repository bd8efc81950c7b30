#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

#include "backend/cuda/column_order.h"
#include "backend/cuda/ops.h"
#include "backend/cuda/segment.h"

// The operations of a forward pass of many rows on the tensor cores, with f16 operands and f32
// sums. A row of activations is scaled by a power of two, exactly, so that its largest value lies
// near 2^10: f16 neither overflows nor loses small values, whatever the row's magnitude.

namespace edgerunner::cuda {

// Rows in f16 and what they must be multiplied with: x[rows, cols], scale[rows].
struct HalfRows {
  __half* x = nullptr;
  float* scale = nullptr;
  ColumnOrder order = ColumnOrder::natural;
};

// to = norm(x) (launch_norm; x itself where there is none), x, or activation(gate) * up
// (launch_activate).
void launch_norm_to_half(const Norm& norm, const float* x, std::uint32_t rows, std::uint32_t dim,
                         const HalfRows& to, cudaStream_t stream);
void launch_to_half(const float* x, std::uint32_t rows, std::uint32_t cols, const HalfRows& to,
                    cudaStream_t stream);
void launch_activate_to_half(Activation activation, const float* gate, const float* up,
                             std::uint32_t rows, std::uint32_t cols, const HalfRows& to,
                             cudaStream_t stream);

// x += scale * norm(branch) (launch_add_branch); then to = next(x).
void launch_add_branch_to_half(const float* branch, const Norm& norm, float scale,
                               std::uint32_t rows, std::uint32_t dim, float* x, const Norm& next,
                               const HalfRows& to, cudaStream_t stream);

// Dequantises `count` rows from `first` on: to[count, cols], rounded to f16.
void launch_dequantize_to_half(const DeviceMatrix& w, std::uint32_t first, std::uint32_t count,
                               __half* to, cudaStream_t stream);

// y[row, n] (+)= scale[row] * (x[row] . w[n]) + bias[n] for w[outputs, cols]; cols is a multiple of
// 8.
struct HalfMatmul {
  HalfRows x;
  const __half* w = nullptr;
  std::uint32_t rows = 0;
  std::uint32_t outputs = 0;
  std::uint32_t cols = 0;
  const float* bias = nullptr;
  float* y = nullptr;
  std::uint32_t y_stride = 0;
  bool add = false;
  const float* up_bias = nullptr;  // of a gated product alone
};
void launch_matmul_half(const HalfMatmul& m, cudaStream_t stream);

// The same on Hopper's own instructions, for an even number of outputs and an even stride.
bool wgmma_supports(int major);
void launch_matmul_wgmma(const HalfMatmul& m, cudaStream_t stream);
// y[row, n] = silu(gate) * up, for w[2 * outputs, cols]: gate's rows, then up's. Hopper only.
void launch_gated_wgmma(const HalfMatmul& m, cudaStream_t stream);

}  // namespace edgerunner::cuda
