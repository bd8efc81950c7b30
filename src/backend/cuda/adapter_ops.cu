#include "backend/cuda/adapter_ops.h"
#include "backend/cuda/reduce.cuh"

namespace edgerunner::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kRows = 8;  // that share what is read of an adapter

// The scales of a block's rows, 0 past the last. Returns whether any has the adapter.
__device__ bool load_scales(const AdaptedRows& rows, std::uint32_t first, float (&scale)[kRows]) {
  bool any = false;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const std::uint32_t row = first + r;
    scale[r] = 0;
    if (row < rows.rows) scale[r] = rows.scales[rows.chosen == nullptr ? row : rows.chosen[row]];
    any = any || scale[r] != 0;
  }
  return any;
}

// A warp makes one element of A x of kRows rows.
template <bool kHalf>
__global__ void down_kernel(DeviceLowRank update, AdaptedRows rows, AdapterInput x, float* low) {
  const std::uint32_t out = blockIdx.x * kWarps + threadIdx.x / 32;
  const std::uint32_t lane = threadIdx.x & 31;
  const std::uint32_t first = blockIdx.y * kRows;
  float scale[kRows];
  if (out >= update.rank || !load_scales(rows, first, scale)) return;
  const float* const a = update.a + static_cast<std::size_t>(out) * update.cols;
  float sum[kRows] = {};
  for (std::uint32_t i = lane; i < update.cols; i += 32) {
    const float weight = a[i];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (scale[r] == 0) continue;
      const std::size_t row = static_cast<std::size_t>(first + r) * update.cols;
      const float value =
          kHalf ? __half2float(x.half.x[row + column_place(x.half.order, i)]) : x.x[row + i];
      sum[r] = fmaf(weight, value, sum[r]);
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    float y = warp_sum(sum[r]);
    if (lane != 0 || scale[r] == 0) continue;
    if constexpr (kHalf) y *= x.half.scale[first + r];
    low[static_cast<std::size_t>(first + r) * update.rank + out] = y * (update.scale * scale[r]);
  }
}

__global__ void lookup_kernel(DeviceLowRank update, AdaptedRows rows, const TokenId* tokens,
                              float factor, float* low) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  const std::size_t row = blockIdx.y;
  const float scale = rows.scales[row];
  if (i >= update.rank || scale == 0) return;
  const std::size_t token = static_cast<std::size_t>(tokens[row]);
  low[row * update.rank + i] = update.a[token * update.rank + i] * (update.scale * scale * factor);
}

// A thread makes one output of kRows rows.
__global__ void up_kernel(DeviceLowRank update, AdaptedRows rows, const float* low, float* y,
                          std::uint32_t y_stride) {
  const std::uint32_t out = blockIdx.x * kThreads + threadIdx.x;
  const std::uint32_t first = blockIdx.y * kRows;
  float scale[kRows];
  if (out >= update.rows || !load_scales(rows, first, scale)) return;
  float sum[kRows] = {};
  for (std::uint32_t i = 0; i < update.rank; ++i) {
    const float weight = update.b[static_cast<std::size_t>(i) * update.rows + out];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (scale[r] == 0) continue;
      sum[r] = fmaf(weight, low[static_cast<std::size_t>(first + r) * update.rank + i], sum[r]);
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (scale[r] != 0) y[static_cast<std::size_t>(first + r) * y_stride + out] += sum[r];
  }
}

unsigned groups(std::uint32_t count, std::uint32_t size) { return (count + size - 1) / size; }

}  // namespace

void launch_adapt_down(const DeviceLowRank& update, const AdaptedRows& rows, const AdapterInput& x,
                       float* low, cudaStream_t stream) {
  const dim3 grid(groups(update.rank, kWarps), groups(rows.rows, kRows));
  const auto kernel = x.x == nullptr ? down_kernel<true> : down_kernel<false>;
  kernel<<<grid, kThreads, 0, stream>>>(update, rows, x, low);
}

void launch_adapt_lookup(const DeviceLowRank& update, const AdaptedRows& rows,
                         const TokenId* tokens, float factor, float* low, cudaStream_t stream) {
  const dim3 grid(groups(update.rank, kThreads), rows.rows);
  lookup_kernel<<<grid, kThreads, 0, stream>>>(update, rows, tokens, factor, low);
}

void launch_adapt_up(const DeviceLowRank& update, const AdaptedRows& rows, const float* low,
                     float* y, std::uint32_t y_stride, cudaStream_t stream) {
  const dim3 grid(groups(update.rows, kThreads), groups(rows.rows, kRows));
  up_kernel<<<grid, kThreads, 0, stream>>>(update, rows, low, y, y_stride);
}

}  // namespace edgerunner::cuda
