#include "backend/cuda/mixture_ops.h"
#include "backend/cuda/ops.h"
#include "backend/cuda/reduce.cuh"
#include "backend/cuda/unpack.cuh"

// Matrix products with weights and activations in f32: the `exact` precision. A warp makes one
// output of up to kRows rows; each lane sums every 32nd product in order and the lanes are added in
// a tree, whatever the number of rows.

namespace edgerunner::cuda {
namespace {

constexpr int kWarps = 8;

// finish(r, sum) is called in lane 0 for the product of `row` with each of the `count` rows
// input(r).
template <ElementType T, int kRows, typename Input, typename Finish>
__device__ void multiply_rows(const std::uint8_t* row, int cols, std::uint32_t count,
                              const Input& input, const Finish& finish) {
  const int lane = static_cast<int>(threadIdx.x & 31);
  float sum[kRows] = {};
  for (int i = lane; i < cols; i += 32) {
    const float weight = row_value<T>(row, cols, i);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (r < count) sum[r] = fmaf(weight, input(r)[i], sum[r]);
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (r >= count) break;
    const float y = warp_sum(sum[r]);
    if (lane == 0) finish(r, y);
  }
}

template <ElementType T, int kRows>
__global__ void __launch_bounds__(kWarps * 32) matmul_kernel(DeviceMatrix w, MatmulRows io) {
  const std::uint32_t out = blockIdx.x * kWarps + threadIdx.x / 32;
  if (out >= w.rows) return;
  const std::uint32_t first = blockIdx.y * kRows;
  const std::uint32_t count = io.rows - first < kRows ? io.rows - first : kRows;
  const float* const x = io.x + static_cast<std::size_t>(first) * io.x_stride;
  multiply_rows<T, kRows>(
      w.data + static_cast<std::size_t>(out) * w.row_bytes, static_cast<int>(w.cols), count,
      [&](int r) { return x + static_cast<std::size_t>(r) * io.x_stride; },
      [&](int r, float y) {
        if (io.bias != nullptr) y += io.bias[out];
        float* const to = io.y + static_cast<std::size_t>(first + r) * io.y_stride + out;
        *to = io.add ? *to + y : y;
      });
}

template <ElementType T, int kRows>
__global__ void __launch_bounds__(kWarps * 32)
    experts_kernel(const __grid_constant__ ExpertProduct p, const float* x) {
  const std::uint32_t out = blockIdx.x * kWarps + threadIdx.x / 32;
  if (out >= p.outputs || blockIdx.y >= *p.tile_count) return;
  const ExpertTile tile = p.tiles[blockIdx.y];
  const float* rows[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const std::size_t slot = tile.first + (r < tile.rows ? r : 0);
    rows[r] = x + (p.sources == nullptr ? slot : p.sources[slot]) * p.w.cols;
  }
  multiply_rows<T, kRows>(
      p.w.data + (static_cast<std::size_t>(tile.expert) * p.outputs + out) * p.w.row_bytes,
      static_cast<int>(p.w.cols), tile.rows, [&](int r) { return rows[r]; },
      [&](int r, float y) {
        p.y[(static_cast<std::size_t>(tile.first) + r) * p.outputs + out] = y;
      });
}

template <ElementType T>
void launch(const DeviceMatrix& w, const MatmulRows& io, cudaStream_t stream) {
  const unsigned outputs = (w.rows + kWarps - 1) / kWarps;
  if (io.rows == 1) {
    matmul_kernel<T, 1><<<outputs, kWarps * 32, 0, stream>>>(w, io);
  } else {
    constexpr int kRows = 8;
    const dim3 grid(outputs, (io.rows + kRows - 1) / kRows);
    matmul_kernel<T, kRows><<<grid, kWarps * 32, 0, stream>>>(w, io);
  }
}

}  // namespace

void launch_matmul_f32(const DeviceMatrix& w, const MatmulRows& io, cudaStream_t stream) {
  if (io.rows == 0) return;
  visit_type(w.type, [&](auto tag) { launch<decltype(tag)::kType>(w, io, stream); });
}

void launch_experts_f32(const ExpertProduct& product, const float* x, cudaStream_t stream) {
  const dim3 grid((product.outputs + kWarps - 1) / kWarps, product.most_tiles);
  visit_type(product.w.type, [&](auto tag) {
    constexpr ElementType kType = decltype(tag)::kType;
    if (product.tile_rows == 1) {
      experts_kernel<kType, 1><<<grid, kWarps * 32, 0, stream>>>(product, x);
    } else {
      experts_kernel<kType, kExpertRowsF32><<<grid, kWarps * 32, 0, stream>>>(product, x);
    }
  });
}

}  // namespace edgerunner::cuda
