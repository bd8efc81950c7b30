#include "backend/cuda/activate.cuh"
#include "backend/cuda/chain.cuh"
#include "backend/cuda/mixture_ops.h"
#include "backend/cuda/reduce.cuh"
#include "backend/cuda/unpack_half.cuh"

// The experts of one row. The weights are all that takes time, and many warps that each ask for
// their own keep the memory busy: a warp makes an output.

namespace edgerunner::cuda {
namespace {

constexpr int kWarps = 8;

__device__ inline float dot_eight(const uint4& weights, const float* x, float sum) {
  const auto* const w = reinterpret_cast<const __half2*>(&weights);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float4 v = reinterpret_cast<const float4*>(x)[i];
    const float2 p = __half22float2(w[2 * i]);
    const float2 q = __half22float2(w[2 * i + 1]);
    sum = fmaf(p.y, v.y, fmaf(p.x, v.x, sum));
    sum = fmaf(q.y, v.w, fmaf(q.x, v.z, sum));
  }
  return sum;
}

__device__ inline std::uint32_t output_of_warp() { return blockIdx.x * kWarps + threadIdx.x / 32; }

template <ElementType T>
__global__ void __launch_bounds__(kWarps * 32)
    hidden_kernel(const __grid_constant__ RowExperts p, Activation activation, const float* x,
                  float* hidden) {
  wait_for_previous();
  let_next_begin();
  const std::uint32_t out = output_of_warp();
  if (out >= p.ffn) return;
  constexpr int kStep = kUnpackStep<T>;
  const std::uint32_t lane = threadIdx.x & 31;
  const std::uint32_t cols = p.gate.cols;
  const std::size_t row =
      (static_cast<std::size_t>(p.experts[blockIdx.y]) * p.ffn + out) * p.gate.row_bytes;
  float gate = 0;
  float up = 0;
#pragma unroll 2
  for (std::uint32_t i = lane * kStep; i < cols; i += 32 * kStep) {
    uint4 gates[kStep / 8];
    uint4 ups[kStep / 8];
    unpack_half<T>(p.gate.data + row, cols, i, gates);
    unpack_half<T>(p.up.data + row, cols, i, ups);
#pragma unroll
    for (int c = 0; c < kStep / 8; ++c) {
      gate = dot_eight(gates[c], x + i + 8 * c, gate);
      up = dot_eight(ups[c], x + i + 8 * c, up);
    }
  }
  gate = warp_sum(gate);
  up = warp_sum(up);
  if (lane != 0) return;
  const float active =
      activation == Activation::silu ? gate / (1.0F + __expf(-gate)) : gelu_tanh(gate);
  hidden[static_cast<std::size_t>(blockIdx.y) * p.ffn + out] = active * up;
}

template <ElementType T>
__global__ void __launch_bounds__(kWarps * 32)
    down_kernel(const __grid_constant__ RowExperts p, const float* hidden, const float* share,
                std::uint32_t dim, float* branch) {
  wait_for_previous();
  let_next_begin();
  const std::uint32_t out = output_of_warp();
  if (out >= dim) return;
  constexpr int kStep = kUnpackStep<T>;
  const std::uint32_t lane = threadIdx.x & 31;
  float whole = 0;
#pragma unroll 4
  for (std::uint32_t rank = 0; rank < p.used; ++rank) {
    const std::uint8_t* const row =
        p.down.data + (static_cast<std::size_t>(p.experts[rank]) * dim + out) * p.down.row_bytes;
    const float* const from = hidden + static_cast<std::size_t>(rank) * p.ffn;
    float sum = 0;
    for (std::uint32_t i = lane * kStep; i < p.ffn; i += 32 * kStep) {
      uint4 values[kStep / 8];
      unpack_half<T>(row, p.ffn, i, values);
#pragma unroll
      for (int c = 0; c < kStep / 8; ++c) sum = dot_eight(values[c], from + i + 8 * c, sum);
    }
    whole = fmaf(p.weights[rank], sum, whole);
  }
  whole = warp_sum(whole);
  if (lane != 0) return;
  branch[out] = share == nullptr ? whole : branch[out] / (1.0F + expf(-*share)) + whole;
}

}  // namespace

void launch_row_experts_hidden(const RowExperts& experts, Activation activation, const float* x,
                               float* hidden, cudaStream_t stream) {
  const dim3 grid((experts.ffn + kWarps - 1) / kWarps, experts.used);
  visit_type(experts.gate.type, [&](auto tag) {
    launch_chained(hidden_kernel<decltype(tag)::kType>, grid, kWarps * 32, 0, stream, experts,
                   activation, x, hidden);
  });
}

void launch_row_experts_down(const RowExperts& experts, const float* hidden, const float* share,
                             std::uint32_t dim, float* branch, cudaStream_t stream) {
  visit_type(experts.down.type, [&](auto tag) {
    launch_chained(down_kernel<decltype(tag)::kType>, dim3((dim + kWarps - 1) / kWarps),
                   kWarps * 32, 0, stream, experts, hidden, share, dim, branch);
  });
}

}  // namespace edgerunner::cuda
