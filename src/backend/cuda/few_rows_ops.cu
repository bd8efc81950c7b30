#include <type_traits>

#include "backend/cuda/activate.cuh"
#include "backend/cuda/chain.cuh"
#include "backend/cuda/few_rows_parts.cuh"
#include "backend/cuda/ptx.cuh"
#include "backend/cuda/reduce.cuh"

// What follows a product of a few rows; of queries, keys and values see few_rows_rotate.cu.

namespace edgerunner::cuda {
namespace {

// The kernels of whole rows have a block a row, or on Hopper, where there is room for small blocks
// beside a product's, a cluster of eight; of four for narrow rows.
template <int kBlocks>
constexpr int kThreads = kBlocks == 1 ? 1024 : 256;  // of a block
template <int kBlocks>
constexpr int kRowThreads = kBlocks* kThreads<kBlocks>;

constexpr int kCollectThreads = 256;

__global__ void __launch_bounds__(kCollectThreads)
    collect_kernel(const __grid_constant__ PartialProduct product,
                   const __grid_constant__ StackedBias bias, std::uint32_t outputs, float* y,
                   std::uint32_t y_stride) {
  let_next_begin();
  wait_for_previous();
  const std::uint32_t i = blockIdx.x * kCollectThreads + threadIdx.x;
  const std::uint32_t row = blockIdx.y;
  if (i >= outputs) return;
  static_assert(kCollectThreads == kTileOutputs);
  const std::uint32_t at[1] = {i};
  float sum[1];
  product_at<5>(
      product, row, at, outputs, [&](std::uint32_t) { return tile_parts(product.cut, blockIdx.x); },
      sum);
  float value = sum[0];
  std::uint32_t from = 0;
#pragma unroll
  for (int part = 0; part < 3; ++part) {
    if (i >= from && i < bias.end[part] && bias.part[part] != nullptr) {
      value = __fadd_rn(value, bias.part[part][i - from]);  // as few_rows_rotate.cu adds it
    }
    from = bias.end[part];
  }
  y[static_cast<std::size_t>(row) * y_stride + i] = value;
}

// A row's values in registers, in kGroups groups of kEach: value[g][e] is element at(g, e).
template <int kBlocks, int kEach>
__device__ inline std::uint32_t element(int g, int e) {
  return static_cast<std::uint32_t>(g * kEach + e) * kRowThreads<kBlocks> +
         blockIdx.x % kBlocks * kThreads<kBlocks> + threadIdx.x;
}

// All tiles' parts, in shared memory. Depends on the cut alone: done before earlier kernels end.
__device__ inline void find_parts(const UnitCut& cut, TileParts* parts) {
  for (std::uint32_t tile = threadIdx.x; tile < cut.total / cut.units; tile += blockDim.x) {
    parts[tile] = tile_parts(cut, tile);
  }
  __syncthreads();
}

// Called by every thread that will call reduce_row, early: shared memory of the other blocks of a
// row can be written once they have begun.
template <int kBlocks>
__device__ inline void begin_row() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  if constexpr (kBlocks > 1) cluster_arrive();
#endif
}

// The row's largest `peak` and, where asked, the sum of `squares`; both in one go.
template <int kBlocks>
__device__ inline float2 reduce_row(float peak, float squares,
                                    float2 (&scratch)[kRowThreads<kBlocks> / 32]) {
  peak = warp_max(peak);
  squares = warp_sum(squares);
  const std::uint32_t warp =
      (blockIdx.x % kBlocks * kThreads<kBlocks> + threadIdx.x) / 32;  // of the row
  if constexpr (kBlocks == 1) {
    if ((threadIdx.x & 31) == 0) scratch[warp] = {peak, squares};
    __syncthreads();
  } else {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    cluster_wait();
    if ((threadIdx.x & 31) < kBlocks) {
      store_in_cluster(scratch + warp, threadIdx.x & 31, {peak, squares});
    }
    cluster_arrive();
    cluster_wait();
#endif
  }
  float2 result = {0, 0};
  for (const float2& some : scratch) {
    result.x = fmaxf(result.x, some.x);
    result.y += some.y;
  }
  return result;
}

// Writes a row whose largest magnitude is `peak`, scaled as prefill_ops.h says.
template <int kBlocks, int kGroups, int kEach>
__device__ inline void write_row(const float (&value)[kGroups][kEach], float by_norm, float peak,
                                 std::uint32_t row, std::uint32_t cols, const HalfRows& to) {
  const int exponent = peak > 0 ? ilogbf(peak) : 10;
  const float by = ldexpf(by_norm, 10 - exponent);
  __half* const out = to.x + static_cast<std::size_t>(row) * cols;
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const std::uint32_t at = element<kBlocks, kEach>(g, e);
      if (at < cols) out[column_place(to.order, at)] = __float2half_rn(value[g][e] * by);
    }
  }
  if (element<kBlocks, kEach>(0, 0) == 0) to.scale[row] = ldexpf(1.0F, exponent - 10);
}

template <int kBlocks, int kGroups, int kEach>
__global__ void __launch_bounds__(kThreads<kBlocks>)
    add_and_norm_kernel(const __grid_constant__ PartialProduct product, const float* bias,
                        std::uint32_t dim, float* x, const float* weight, float epsilon,
                        HalfRows to, float* normed) {
  __shared__ float2 scratch[kRowThreads<kBlocks> / 32];
  __shared__ TileParts parts[2 * kMostFewRowsCols / kTileOutputs];
  if (weight != nullptr) begin_row<kBlocks>();
  find_parts(product.cut, parts);
  const auto parts_of = [&](std::uint32_t tile) { return parts[tile]; };
  let_next_begin();
  wait_for_previous();
  const std::uint32_t row = blockIdx.x / kBlocks;
  float* const values = x + static_cast<std::size_t>(row) * dim;
  float value[kGroups][kEach];
  float squares = 0;
  float peak = 0;
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    std::uint32_t at[kEach];
    float old[kEach];
    float by[kEach];
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      at[e] = element<kBlocks, kEach>(g, e);
      old[e] = at[e] < dim ? values[at[e]] : 0.0F;
      by[e] = weight != nullptr && at[e] < dim ? weight[at[e]] : 0.0F;
      if (bias != nullptr && at[e] < dim) old[e] += bias[at[e]];
    }
    product_at<20 / kEach>(product, row, at, dim, parts_of, value[g]);
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const float sum = old[e] + value[g][e];
      if (at[e] < dim) values[at[e]] = sum;
      squares = fmaf(sum, sum, squares);
      value[g][e] = sum * by[e];
      peak = fmaxf(peak, fabsf(value[g][e]));
    }
  }
  if (weight == nullptr) return;
  const float2 whole = reduce_row<kBlocks>(peak, squares, scratch);
  const float norm = 1.0F / sqrtf(whole.y / static_cast<float>(dim) + epsilon);
  write_row<kBlocks>(value, norm, whole.x * norm, row, dim, to);
  if (normed == nullptr) return;
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const std::uint32_t at = element<kBlocks, kEach>(g, e);
      if (at < dim) normed[static_cast<std::size_t>(row) * dim + at] = value[g][e] * norm;
    }
  }
}

template <int kBlocks, int kGroups, int kEach, Activation kActivation>
__global__ void __launch_bounds__(kThreads<kBlocks>)
    gated_parts_kernel(const __grid_constant__ PartialProduct product, const float* gate_bias,
                       const float* up_bias, std::uint32_t ffn, HalfRows to) {
  __shared__ float2 scratch[kRowThreads<kBlocks> / 32];
  __shared__ TileParts parts[2 * kMostFewRowsCols / kTileOutputs];
  begin_row<kBlocks>();
  find_parts(product.cut, parts);
  const auto parts_of = [&](std::uint32_t tile) { return parts[tile]; };
  let_next_begin();
  wait_for_previous();
  const std::uint32_t row = blockIdx.x / kBlocks;
  float value[kGroups][kEach];
  float peak = 0;
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    constexpr std::uint32_t kNone = 0xFFFFFFFFU;
    std::uint32_t at[2 * kEach];  // of gate, then of up
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const std::uint32_t i = element<kBlocks, kEach>(g, e);
      at[e] = i < ffn ? i : kNone;
      at[kEach + e] = i < ffn ? i + ffn : kNone;
    }
    float x[2 * kEach];
    product_at<3>(product, row, at, 2 * ffn, parts_of, x);
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const bool inside = at[e] != kNone;
      float gate = x[e];
      float up = x[kEach + e];
      if (inside && gate_bias != nullptr) gate += gate_bias[at[e]];
      if (inside && up_bias != nullptr) up += up_bias[at[e]];
      if constexpr (kActivation == Activation::silu) {
        gate = gate / (1.0F + __expf(-gate));
      } else {
        gate = gelu_tanh(gate);
      }
      value[g][e] = inside ? gate * up : 0.0F;
      peak = fmaxf(peak, fabsf(value[g][e]));
    }
  }
  write_row<kBlocks>(value, 1.0F, reduce_row<kBlocks>(peak, 0, scratch).x, row, ffn, to);
}

// Calls launch(blocks of a row, groups, values of a group), all as constants, with the fewest
// values a thread that suffice.
template <typename Launch>
void with_groups(std::uint32_t cols, const Launch& launch) {
  const auto with_blocks = [&](auto blocks) {
    constexpr std::integral_constant<int, 1> kOne;
    constexpr std::integral_constant<int, 2> kTwo;
    constexpr std::integral_constant<int, 4> kFour;
    constexpr std::uint32_t kWidth = kRowThreads<decltype(blocks)::value>;
    if (cols <= kWidth) {
      launch(blocks, kOne, kOne);
    } else if (cols <= 2 * kWidth) {
      launch(blocks, kOne, kTwo);
    } else if (cols <= 4 * kWidth) {
      launch(blocks, kOne, kFour);
    } else if (cols <= 8 * kWidth) {
      launch(blocks, kTwo, kFour);
    } else if (cols <= 16 * kWidth) {
      launch(blocks, kFour, kFour);
    } else {
      launch(blocks, std::integral_constant<int, 8>{}, kFour);
    }
  };
  if (!chains_kernels()) {
    with_blocks(std::integral_constant<int, 1>{});
  } else if (cols <= kRowThreads<4>) {
    constexpr std::integral_constant<int, 1> kOne;
    launch(std::integral_constant<int, 4>{}, kOne, kOne);
  } else {
    with_blocks(std::integral_constant<int, 8>{});
  }
}
static_assert(8 * 4 * kRowThreads<1> == kMostFewRowsCols);

}  // namespace

void launch_collect(const PartialProduct& product, const StackedBias& bias, std::uint32_t rows,
                    std::uint32_t outputs, float* y, std::uint32_t y_stride, cudaStream_t stream) {
  const dim3 grid((outputs + kCollectThreads - 1) / kCollectThreads, rows);
  launch_chained(collect_kernel, grid, kCollectThreads, 0, stream, product, bias, outputs, y,
                 y_stride);
}

void launch_add_and_norm(const PartialProduct& product, const float* bias, std::uint32_t rows,
                         std::uint32_t dim, float* x, const float* weight, float epsilon,
                         const HalfRows& to, float* normed, cudaStream_t stream) {
  with_groups(dim, [&](auto blocks, auto groups, auto each) {
    launch_chained_clusters(blocks(), add_and_norm_kernel<blocks(), groups(), each()>,
                            dim3(rows * blocks()), kThreads<blocks()>, 0, stream, product, bias,
                            dim, x, weight, epsilon, to, normed);
  });
}

void launch_gated_parts(Activation activation, const PartialProduct& product,
                        const float* gate_bias, const float* up_bias, std::uint32_t rows,
                        std::uint32_t ffn, const HalfRows& to, cudaStream_t stream) {
  with_groups(ffn, [&](auto blocks, auto groups, auto each) {
    const auto kernel = activation == Activation::silu
                            ? gated_parts_kernel<blocks(), groups(), each(), Activation::silu>
                            : gated_parts_kernel<blocks(), groups(), each(), Activation::gelu_tanh>;
    launch_chained_clusters(blocks(), kernel, dim3(rows * blocks()), kThreads<blocks()>, 0, stream,
                            product, gate_bias, up_bias, ffn, to);
  });
}

}  // namespace edgerunner::cuda
