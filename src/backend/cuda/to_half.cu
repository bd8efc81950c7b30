#include "backend/cuda/activate.cuh"
#include "backend/cuda/chain.cuh"
#include "backend/cuda/norm_row.cuh"
#include "backend/cuda/prefill_ops.h"
#include "backend/cuda/reduce.cuh"
#include "backend/cuda/unpack_half.cuh"

namespace edgerunner::cuda {
namespace {

constexpr int kThreads = 256;

// A block a row. `at(i)` is the row's value at i; it is asked twice.
template <typename At>
__device__ void write_row(const HalfRows& to, std::uint32_t cols, float* scratch, const At& at) {
  float peak = 0;
  for (std::uint32_t i = threadIdx.x; i < cols; i += kThreads) peak = fmaxf(peak, fabsf(at(i)));
  peak = block_max<kThreads>(peak, scratch);
  // 2^(10 - e) for a peak in [2^e, 2^(e+1)).
  const int exponent = peak > 0 ? ilogbf(peak) : 10;
  const float by = ldexpf(1.0F, 10 - exponent);
  __half* const out = to.x + static_cast<std::size_t>(blockIdx.x) * cols;
  for (std::uint32_t i = threadIdx.x; i < cols; i += kThreads) {
    out[column_place(to.order, i)] = __float2half_rn(at(i) * by);
  }
  if (threadIdx.x == 0) to.scale[blockIdx.x] = ldexpf(1.0F, exponent - 10);
}

__global__ void norm_kernel(Norm norm, const float* x, std::uint32_t dim, HalfRows to) {
  __shared__ float scratch[kThreads / 32];
  let_next_begin();
  wait_for_previous();
  const float* const in = x + static_cast<std::size_t>(blockIdx.x) * dim;
  const RowNorm by = row_norm<kThreads>(norm, in, dim, scratch);
  write_row(to, dim, scratch, [&](std::uint32_t i) { return by.at(norm, in[i], i); });
}

__global__ void add_branch_kernel(const float* branch, Norm norm, float scale, float* x, Norm next,
                                  std::uint32_t dim, HalfRows to) {
  __shared__ float scratch[kThreads / 32];
  let_next_begin();
  wait_for_previous();
  const float* const added = branch + static_cast<std::size_t>(blockIdx.x) * dim;
  float* const row = x + static_cast<std::size_t>(blockIdx.x) * dim;
  const RowNorm by = row_norm<kThreads>(norm, added, dim, scratch);
  for (std::uint32_t i = threadIdx.x; i < dim; i += kThreads) {
    row[i] += scale * by.at(norm, added[i], i);
  }
  __syncthreads();
  const RowNorm then = row_norm<kThreads>(next, row, dim, scratch);
  write_row(to, dim, scratch, [&](std::uint32_t i) { return then.at(next, row[i], i); });
}

__global__ void plain_kernel(const float* x, std::uint32_t cols, HalfRows to) {
  __shared__ float scratch[kThreads / 32];
  let_next_begin();
  wait_for_previous();
  const float* const in = x + static_cast<std::size_t>(blockIdx.x) * cols;
  write_row(to, cols, scratch, [&](std::uint32_t i) { return in[i]; });
}

__global__ void activate_kernel(Activation activation, const float* gate, const float* up,
                                std::uint32_t cols, HalfRows to) {
  __shared__ float scratch[kThreads / 32];
  let_next_begin();
  wait_for_previous();
  const std::size_t row = static_cast<std::size_t>(blockIdx.x) * cols;
  write_row(to, cols, scratch, [&](std::uint32_t i) {
    const float x = gate[row + i];
    const float y = activation == Activation::silu ? x / (1.0F + __expf(-x)) : gelu_tanh(x);
    return up == nullptr ? y : y * up[row + i];
  });
}

template <ElementType T>
__global__ void dequantize_kernel(DeviceMatrix w, std::uint32_t first, __half* to) {
  constexpr int kStep = kUnpackStep<T>;
  const std::uint32_t i = (blockIdx.x * kThreads + threadIdx.x) * kStep;
  if (i >= w.cols) return;
  uint4 values[kStep / 8];
  unpack_half<T>(w.data + static_cast<std::size_t>(first + blockIdx.y) * w.row_bytes, w.cols, i,
                 values);
  auto* const out =
      reinterpret_cast<uint4*>(to + static_cast<std::size_t>(blockIdx.y) * w.cols + i);
#pragma unroll
  for (int k = 0; k < kStep / 8; ++k) out[k] = values[k];
}

}  // namespace

void launch_norm_to_half(const Norm& norm, const float* x, std::uint32_t rows, std::uint32_t dim,
                         const HalfRows& to, cudaStream_t stream) {
  if (norm.weight == nullptr) {
    launch_to_half(x, rows, dim, to, stream);
  } else {
    launch_chained(norm_kernel, dim3(rows), kThreads, 0, stream, norm, x, dim, to);
  }
}

void launch_to_half(const float* x, std::uint32_t rows, std::uint32_t cols, const HalfRows& to,
                    cudaStream_t stream) {
  launch_chained(plain_kernel, dim3(rows), kThreads, 0, stream, x, cols, to);
}

void launch_activate_to_half(Activation activation, const float* gate, const float* up,
                             std::uint32_t rows, std::uint32_t cols, const HalfRows& to,
                             cudaStream_t stream) {
  launch_chained(activate_kernel, dim3(rows), kThreads, 0, stream, activation, gate, up, cols, to);
}

void launch_add_branch_to_half(const float* branch, const Norm& norm, float scale,
                               std::uint32_t rows, std::uint32_t dim, float* x, const Norm& next,
                               const HalfRows& to, cudaStream_t stream) {
  launch_chained(add_branch_kernel, dim3(rows), kThreads, 0, stream, branch, norm, scale, x, next,
                 dim, to);
}

void launch_dequantize_to_half(const DeviceMatrix& w, std::uint32_t first, std::uint32_t count,
                               __half* to, cudaStream_t stream) {
  constexpr std::uint32_t kMostRows = 32768;  // below the limit of a grid's second dimension
  for (std::uint32_t row = 0; row < count; row += kMostRows) {
    const std::uint32_t rows = count - row < kMostRows ? count - row : kMostRows;
    __half* const out = to + static_cast<std::size_t>(row) * w.cols;
    visit_type(w.type, [&](auto tag) {
      constexpr ElementType kType = decltype(tag)::kType;
      const dim3 grid((w.cols / kUnpackStep<kType> + kThreads - 1) / kThreads, rows);
      dequantize_kernel<kType><<<grid, kThreads, 0, stream>>>(w, first + row, out);
    });
  }
}

}  // namespace edgerunner::cuda
