#include "backend/cuda/activate.cuh"
#include "backend/cuda/chain.cuh"
#include "backend/cuda/mixture_ops.h"
#include "backend/cuda/reduce.cuh"
#include "backend/cuda/unpack_half.cuh"

// The experts of one row. The weights are all that takes time: many warps ask for their own.

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

// A warp an output of an expert.
template <ElementType T>
__global__ void __launch_bounds__(kWarps * 32)
    hidden_kernel(const __grid_constant__ RowExperts p, Activation activation, const float* x,
                  float* hidden) {
  wait_for_previous();
  let_next_begin();
  const std::uint32_t out = blockIdx.x * kWarps + threadIdx.x / 32;
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

// A warp an expert, of some neighbouring outputs, whose weights are all on their way together.
constexpr int kOutputs = 4;

template <ElementType T>
__global__ void __launch_bounds__(kWarps * 32)
    down_kernel(const __grid_constant__ RowExperts p, const float* hidden, const float* share,
                std::uint32_t dim, float* branch) {
  __shared__ float sums[kWarps][kOutputs];
  wait_for_previous();
  let_next_begin();
  constexpr int kStep = kUnpackStep<T>;
  const std::uint32_t warp = threadIdx.x / 32;
  const std::uint32_t lane = threadIdx.x & 31;
  const std::uint32_t out0 = blockIdx.x * kOutputs;
  float whole[kOutputs] = {};
  for (std::uint32_t rank = warp; rank < p.used; rank += kWarps) {
    const std::uint8_t* const rows =
        p.down.data + (static_cast<std::size_t>(p.experts[rank]) * dim + out0) * p.down.row_bytes;
    const float* const from = hidden + static_cast<std::size_t>(rank) * p.ffn;
    float sum[kOutputs] = {};
#pragma unroll 2
    for (std::uint32_t i = lane * kStep; i < p.ffn; i += 32 * kStep) {
      uint4 values[kOutputs][kStep / 8];
#pragma unroll
      for (int o = 0; o < kOutputs; ++o) {
        const std::size_t used = out0 + o < dim ? o : 0;
        unpack_half<T>(rows + used * p.down.row_bytes, p.ffn, i, values[o]);
      }
#pragma unroll
      for (int c = 0; c < kStep / 8; ++c) {
#pragma unroll
        for (int o = 0; o < kOutputs; ++o) {
          sum[o] = dot_eight(values[o][c], from + i + 8 * c, sum[o]);
        }
      }
    }
#pragma unroll
    for (int o = 0; o < kOutputs; ++o) whole[o] = fmaf(p.weights[rank], sum[o], whole[o]);
  }
#pragma unroll
  for (int o = 0; o < kOutputs; ++o) {
    whole[o] = warp_sum(whole[o]);
    if (lane == 0) sums[warp][o] = whole[o];
  }
  __syncthreads();
  const std::uint32_t out = out0 + threadIdx.x;
  if (threadIdx.x >= kOutputs || out >= dim) return;
  float sum = share == nullptr ? 0.0F : branch[out] / (1.0F + expf(-*share));
#pragma unroll
  for (int w = 0; w < kWarps; ++w) sum += sums[w][threadIdx.x];
  branch[out] = sum;
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
    launch_chained(down_kernel<decltype(tag)::kType>, dim3((dim + kOutputs - 1) / kOutputs),
                   kWarps * 32, 0, stream, experts, hidden, share, dim, branch);
  });
}

}  // namespace edgerunner::cuda
