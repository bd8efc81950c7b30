#include "backend/cuda/ops.h"
#include "backend/cuda/reduce.cuh"
#include "backend/cuda/unpack.cuh"

// Matrix products with weights and activations in f32: the `exact` precision. A warp makes one
// output of up to kRows rows; each lane sums every 32nd product in order and the lanes are added in
// a tree, whatever the number of rows.

namespace edgerunner::cuda {
namespace {

constexpr int kWarps = 8;

template <ElementType T, int kRows>
__global__ void __launch_bounds__(kWarps * 32) matmul_kernel(DeviceMatrix w, MatmulRows io) {
  const std::uint32_t out = blockIdx.x * kWarps + threadIdx.x / 32;
  if (out >= w.rows) return;
  const int lane = static_cast<int>(threadIdx.x & 31);
  const int cols = static_cast<int>(w.cols);
  const std::uint8_t* const row = w.data + static_cast<std::size_t>(out) * w.row_bytes;
  const std::uint32_t first = blockIdx.y * kRows;
  const std::uint32_t count = io.rows - first < kRows ? io.rows - first : kRows;
  const float* const x = io.x + static_cast<std::size_t>(first) * io.x_stride;

  float sum[kRows] = {};
  for (int i = lane; i < cols; i += 32) {
    const float weight = row_value<T>(row, cols, i);
    for (int r = 0; r < kRows; ++r) {
      if (r < count) {
        sum[r] = fmaf(weight, x[static_cast<std::size_t>(r) * io.x_stride + i], sum[r]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    if (r >= count) break;
    float y = warp_sum(sum[r]);
    if (lane != 0) continue;
    if (io.bias != nullptr) y += io.bias[out];
    float* const to = io.y + static_cast<std::size_t>(first + r) * io.y_stride + out;
    *to = io.add ? *to + y : y;
  }
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

}  // namespace edgerunner::cuda
