#include "backend/cuda/chain.cuh"
#include "backend/cuda/few_rows.h"
#include "backend/cuda/half_row.cuh"
#include "backend/cuda/reduce.cuh"

// What follows a product of a few rows: each kernel adds the product's parts as it reads them,
// always in the order of the columns.

namespace edgerunner::cuda {
namespace {

constexpr int kThreads = 1024;  // a block a row: there are few rows

__device__ inline float product_at(const PartialProduct& p, float scale, std::uint32_t row,
                                   std::uint32_t i) {
  const std::uint32_t tile = i / kTileOutputs;
  const std::uint32_t unit = tile * p.cut.units;
  const std::uint32_t first = p.cut.block_of(unit);
  const std::uint32_t last = p.cut.block_of(unit + p.cut.units - 1);
  const float* from = p.parts +
                      (static_cast<std::size_t>(first + tile) * p.stride + row) * kTileOutputs +
                      i % kTileOutputs;
  float sum = 0;
  for (std::uint32_t block = first; block <= last; ++block) {
    sum += __ldcg(from);
    from += static_cast<std::size_t>(p.stride) * kTileOutputs;
  }
  return sum * scale;
}

constexpr int kCollectThreads = 256;

__global__ void __launch_bounds__(kCollectThreads)
    collect_kernel(const __grid_constant__ PartialProduct product,
                   const __grid_constant__ StackedBias bias, std::uint32_t outputs, float* y,
                   std::uint32_t y_stride) {
  wait_for_previous();
  let_next_begin();
  const std::uint32_t i = blockIdx.x * kCollectThreads + threadIdx.x;
  const std::uint32_t row = blockIdx.y;
  if (i >= outputs) return;
  float value = product_at(product, product.scale[row], row, i);
  std::uint32_t from = 0;
#pragma unroll
  for (int part = 0; part < 3; ++part) {
    if (i >= from && i < bias.end[part] && bias.part[part] != nullptr) {
      value += bias.part[part][i - from];
    }
    from = bias.end[part];
  }
  y[static_cast<std::size_t>(row) * y_stride + i] = value;
}

__global__ void __launch_bounds__(kThreads)
    add_and_norm_kernel(const __grid_constant__ PartialProduct product, const float* bias,
                        std::uint32_t dim, float* x, const float* weight, float epsilon,
                        HalfRows to) {
  __shared__ float scratch[kThreads / 32];
  wait_for_previous();
  let_next_begin();
  const std::uint32_t row = blockIdx.x;
  float* const values = x + static_cast<std::size_t>(row) * dim;
  const float scale = product.scale[row];
  float squares = 0;
#pragma unroll 4
  for (std::uint32_t i = threadIdx.x; i < dim; i += kThreads) {
    float value = values[i] + product_at(product, scale, row, i);
    if (bias != nullptr) value += bias[i];
    values[i] = value;
    squares = fmaf(value, value, squares);
  }
  if (weight == nullptr) return;
  squares = block_sum<kThreads>(squares, scratch);
  const float by = 1.0F / sqrtf(squares / static_cast<float>(dim) + epsilon);
  const auto at = [&](std::uint32_t i) { return values[i] * by * weight[i]; };
  float peak = 0;
  for (std::uint32_t i = threadIdx.x; i < dim; i += kThreads) peak = fmaxf(peak, fabsf(at(i)));
  write_half_row<kThreads>(to, row, dim, peak, scratch, at);
}

__global__ void __launch_bounds__(kThreads)
    silu_parts_kernel(const __grid_constant__ PartialProduct product, const float* gate_bias,
                      const float* up_bias, std::uint32_t ffn, float* values, HalfRows to) {
  __shared__ float scratch[kThreads / 32];
  wait_for_previous();
  let_next_begin();
  const std::uint32_t row = blockIdx.x;
  float* const out = values + static_cast<std::size_t>(row) * ffn;
  const float scale = product.scale[row];
  float peak = 0;
#pragma unroll 4
  for (std::uint32_t i = threadIdx.x; i < ffn; i += kThreads) {
    float gate = product_at(product, scale, row, i);
    float up = product_at(product, scale, row, ffn + i);
    if (gate_bias != nullptr) gate += gate_bias[i];
    if (up_bias != nullptr) up += up_bias[i];
    const float value = gate / (1.0F + __expf(-gate)) * up;
    out[i] = value;
    peak = fmaxf(peak, fabsf(value));
  }
  write_half_row<kThreads>(to, row, ffn, peak, scratch, [&](std::uint32_t i) { return out[i]; });
}

}  // namespace

void launch_collect(const PartialProduct& product, const StackedBias& bias, std::uint32_t rows,
                    std::uint32_t outputs, float* y, std::uint32_t y_stride, cudaStream_t stream) {
  const dim3 grid((outputs + kCollectThreads - 1) / kCollectThreads, rows);
  launch_chained(collect_kernel, grid, kCollectThreads, 0, stream, product, bias, outputs, y,
                 y_stride);
}

void launch_add_and_norm(const PartialProduct& product, const float* bias, std::uint32_t rows,
                         std::uint32_t dim, float* x, const float* weight, float epsilon,
                         const HalfRows& to, cudaStream_t stream) {
  launch_chained(add_and_norm_kernel, dim3(rows), kThreads, 0, stream, product, bias, dim, x,
                 weight, epsilon, to);
}

void launch_silu_parts(const PartialProduct& product, const float* gate_bias, const float* up_bias,
                       std::uint32_t rows, std::uint32_t ffn, float* values, const HalfRows& to,
                       cudaStream_t stream) {
  launch_chained(silu_parts_kernel, dim3(rows), kThreads, 0, stream, product, gate_bias, up_bias,
                 ffn, values, to);
}

}  // namespace edgerunner::cuda
