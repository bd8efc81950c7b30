#include "backend/cuda/prefill_ops.h"
#include "backend/cuda/reduce.cuh"
#include "backend/cuda/unpack.cuh"

namespace edgerunner::cuda {
namespace {

constexpr int kThreads = 256;

__device__ float block_max(float x, float* scratch) {
  x = warp_max(x);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = x;
  __syncthreads();
  float peak = 0;
  for (int i = 0; i < kThreads / 32; ++i) peak = fmaxf(peak, scratch[i]);
  return peak;
}

// A block a row. `at(i)` is the row's value at i; it is asked twice.
template <typename At>
__device__ void write_row(const HalfRows& to, std::uint32_t cols, float* scratch, const At& at) {
  float peak = 0;
  for (std::uint32_t i = threadIdx.x; i < cols; i += kThreads) peak = fmaxf(peak, fabsf(at(i)));
  peak = block_max(peak, scratch);
  // 2^(10 - e) for a peak in [2^e, 2^(e+1)).
  const int exponent = peak > 0 ? ilogbf(peak) : 10;
  const float by = ldexpf(1.0F, 10 - exponent);
  __half* const out = to.x + static_cast<std::size_t>(blockIdx.x) * cols;
  for (std::uint32_t i = threadIdx.x; i < cols; i += kThreads) out[i] = __float2half_rn(at(i) * by);
  if (threadIdx.x == 0) to.scale[blockIdx.x] = ldexpf(1.0F, exponent - 10);
}

__global__ void norm_kernel(const float* x, const float* weight, float epsilon, std::uint32_t dim,
                            HalfRows to) {
  __shared__ float scratch[kThreads / 32];
  const float* const in = x + static_cast<std::size_t>(blockIdx.x) * dim;
  float squares = 0;
  for (std::uint32_t i = threadIdx.x; i < dim; i += kThreads) squares = fmaf(in[i], in[i], squares);
  squares = block_sum<kThreads>(squares, scratch);
  const float scale = 1.0F / sqrtf(squares / static_cast<float>(dim) + epsilon);
  write_row(to, dim, scratch, [&](std::uint32_t i) { return in[i] * scale * weight[i]; });
}

__global__ void plain_kernel(const float* x, std::uint32_t cols, HalfRows to) {
  __shared__ float scratch[kThreads / 32];
  const float* const in = x + static_cast<std::size_t>(blockIdx.x) * cols;
  write_row(to, cols, scratch, [&](std::uint32_t i) { return in[i]; });
}

__global__ void silu_kernel(const float* gate, const float* up, std::uint32_t cols, HalfRows to) {
  __shared__ float scratch[kThreads / 32];
  const std::size_t row = static_cast<std::size_t>(blockIdx.x) * cols;
  write_row(to, cols, scratch, [&](std::uint32_t i) {
    const float x = gate[row + i];
    return x / (1.0F + __expf(-x)) * up[row + i];
  });
}

// Eight neighbouring elements a thread.
template <ElementType T>
__global__ void dequantize_kernel(DeviceMatrix w, std::uint32_t first, __half* to) {
  const std::uint32_t i = (blockIdx.x * kThreads + threadIdx.x) * 8;
  if (i >= w.cols) return;
  constexpr Layout kLayout = layout(T);
  const std::uint8_t* const row =
      w.data + static_cast<std::size_t>(first + blockIdx.y) * w.row_bytes;
  const std::uint32_t segment = i / kLayout.segment_elements;
  const std::uint32_t rest = w.cols - segment * kLayout.segment_elements;
  const int n = static_cast<int>(
      (rest < kLayout.segment_elements ? rest : kLayout.segment_elements) / kLayout.block_length);
  const std::uint8_t* const seg = row + static_cast<std::size_t>(segment) * segment_bytes(kLayout);
  const int at = static_cast<int>(i - segment * kLayout.segment_elements);
  __half2 pairs[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    pairs[k] = __floats2half2_rn(value<T>(seg, n, at + 2 * k), value<T>(seg, n, at + 2 * k + 1));
  }
  *reinterpret_cast<uint4*>(to + static_cast<std::size_t>(blockIdx.y) * w.cols + i) =
      *reinterpret_cast<const uint4*>(pairs);
}

}  // namespace

void launch_norm_to_half(const float* x, const float* weight, float epsilon, std::uint32_t rows,
                         std::uint32_t dim, const HalfRows& to, cudaStream_t stream) {
  norm_kernel<<<rows, kThreads, 0, stream>>>(x, weight, epsilon, dim, to);
}

void launch_to_half(const float* x, std::uint32_t rows, std::uint32_t cols, const HalfRows& to,
                    cudaStream_t stream) {
  plain_kernel<<<rows, kThreads, 0, stream>>>(x, cols, to);
}

void launch_silu_to_half(const float* gate, const float* up, std::uint32_t rows, std::uint32_t cols,
                         const HalfRows& to, cudaStream_t stream) {
  silu_kernel<<<rows, kThreads, 0, stream>>>(gate, up, cols, to);
}

void launch_dequantize_to_half(const DeviceMatrix& w, std::uint32_t first, std::uint32_t count,
                               __half* to, cudaStream_t stream) {
  constexpr std::uint32_t kMostRows = 32768;  // below the limit of a grid's second dimension
  for (std::uint32_t row = 0; row < count; row += kMostRows) {
    const dim3 grid((w.cols / 8 + kThreads - 1) / kThreads,
                    count - row < kMostRows ? count - row : kMostRows);
    visit_type(w.type, [&](auto tag) {
      dequantize_kernel<decltype(tag)::kType><<<grid, kThreads, 0, stream>>>(
          w, first + row, to + static_cast<std::size_t>(row) * w.cols);
    });
  }
}

}  // namespace edgerunner::cuda
