#include <type_traits>

#include "backend/cuda/activate.cuh"
#include "backend/cuda/chain.cuh"
#include "backend/cuda/few_rows_parts.cuh"
#include "backend/cuda/half_rows.cuh"
#include "backend/cuda/ptx.cuh"
#include "backend/cuda/reduce.cuh"

// What follows a product of a few rows; of queries, keys and values see few_rows_rotate.cu.

namespace edgerunner::cuda {
namespace {

// The kernels of whole rows. On Hopper a row has a block of 256 threads, or a cluster of two, four
// or eight where it is wide: each finds room beside a block of the product before, and leaves room
// for one of the product after, as long as there are no more of them than multiprocessors. A block
// that found none would keep the next product from fetching its weights. Elsewhere a row is a
// block.
template <int kBlocks, int kThreads>
struct Row {
  static constexpr int kAll = kBlocks * kThreads;
  // Registers of a thread. A product of up to 32 rows has 80 in each of its 640 threads and so
  // leaves 56 for each of 256 of 65,536; of 1,024 threads there are 64.
  static constexpr int kRegisters = kThreads == 1024 ? 64 : 56;
  // A thread takes four neighbouring columns of each group.
  static constexpr std::uint32_t kWidth = 4 * kAll;

  __device__ static std::uint32_t block() { return blockIdx.x % kBlocks; }
  __device__ static std::uint32_t thread() { return block() * kThreads + threadIdx.x; }
  __device__ static std::uint32_t column(int group) {
    return static_cast<std::uint32_t>(group) * kWidth + 4 * thread();
  }
};

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
template <int kBlocks, int kThreads>
__device__ inline float2 reduce_row(float peak, float squares,
                                    float2 (&scratch)[Row<kBlocks, kThreads>::kAll / 32]) {
  peak = warp_max(peak);
  squares = warp_sum(squares);
  const std::uint32_t warp = Row<kBlocks, kThreads>::thread() / 32;
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

__device__ inline float largest(const float4& x) {
  return fmaxf(fmaxf(fabsf(x.x), fabsf(x.y)), fmaxf(fabsf(x.z), fabsf(x.w)));
}

// Writes a row whose largest magnitude is `peak`, scaled as prefill_ops.h says.
template <typename Place, int kGroups>
__device__ inline void write_row(const float4 (&value)[kGroups], float by_norm, float peak,
                                 std::uint32_t row, std::uint32_t cols, const HalfRows& to) {
  const int exponent = peak > 0 ? ilogbf(peak) : 10;
  const float by = ldexpf(by_norm, 10 - exponent);
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const std::uint32_t at = Place::column(g);
    if (at >= cols) continue;
    store_pair(to, row, cols, at, __floats2half2_rn(value[g].x * by, value[g].y * by));
    store_pair(to, row, cols, at + 2, __floats2half2_rn(value[g].z * by, value[g].w * by));
  }
  if (Place::thread() == 0) to.scale[row] = ldexpf(1.0F, exponent - 10);
}

template <int kBlocks, int kThreads, int kGroups>
__global__ void __maxnreg__((Row<kBlocks, kThreads>::kRegisters))
    add_and_norm_kernel(const __grid_constant__ PartialProduct product, const float* bias,
                        std::uint32_t dim, float* x, const float* weight, float epsilon,
                        HalfRows to, float* normed) {
  using Place = Row<kBlocks, kThreads>;
  __shared__ float2 scratch[Place::kAll / 32];
  __shared__ TileParts parts[2 * kMostFewRowsCols / kTileOutputs];
  if (weight != nullptr) begin_row<kBlocks>();
  find_parts(product.cut, parts);
  const auto parts_of = [&](std::uint32_t tile) { return parts[tile]; };
  const auto four_of = [&](const float* row, std::uint32_t at) {
    return at < dim ? *reinterpret_cast<const float4*>(row + at) : float4{};
  };
  let_next_begin();
  wait_for_previous();
  const std::uint32_t row = blockIdx.x / kBlocks;
  float* const values = x + static_cast<std::size_t>(row) * dim;
  float4 value[kGroups];
  float squares = 0;
  float peak = 0;
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const std::uint32_t at[1] = {Place::column(g)};
    float4 sum = four_of(values, at[0]);
    const float4 by = weight == nullptr ? float4{} : four_of(weight, at[0]);
    if (bias != nullptr) add_to(sum, four_of(bias, at[0]));
    float4 added[1];
    product_at<5>(product, row, at, dim, parts_of, added);
    add_to(sum, added[0]);
    if (at[0] < dim) *reinterpret_cast<float4*>(values + at[0]) = sum;
    squares = fmaf(sum.x, sum.x, fmaf(sum.y, sum.y, squares));
    squares = fmaf(sum.z, sum.z, fmaf(sum.w, sum.w, squares));
    value[g] = {sum.x * by.x, sum.y * by.y, sum.z * by.z, sum.w * by.w};
    peak = fmaxf(peak, largest(value[g]));
  }
  if (weight == nullptr) return;
  const float2 whole = reduce_row<kBlocks, kThreads>(peak, squares, scratch);
  const float norm = 1.0F / sqrtf(whole.y / static_cast<float>(dim) + epsilon);
  write_row<Place>(value, norm, whole.x * norm, row, dim, to);
  if (normed == nullptr) return;
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const std::uint32_t at = Place::column(g);
    multiply_by(value[g], norm);
    if (at < dim) {
      *reinterpret_cast<float4*>(normed + static_cast<std::size_t>(row) * dim + at) = value[g];
    }
  }
}

template <Activation kActivation>
__device__ inline float activated(float gate, float up) {
  if constexpr (kActivation == Activation::silu) {
    return gate / (1.0F + __expf(-gate)) * up;
  } else {
    return gelu_tanh(gate) * up;
  }
}

template <int kBlocks, int kThreads, int kGroups, Activation kActivation>
__global__ void __maxnreg__((Row<kBlocks, kThreads>::kRegisters))
    gated_parts_kernel(const __grid_constant__ PartialProduct product, const float* gate_bias,
                       const float* up_bias, std::uint32_t ffn, HalfRows to) {
  using Place = Row<kBlocks, kThreads>;
  __shared__ float2 scratch[Place::kAll / 32];
  __shared__ TileParts parts[2 * kMostFewRowsCols / kTileOutputs];
  begin_row<kBlocks>();
  find_parts(product.cut, parts);
  const auto parts_of = [&](std::uint32_t tile) { return parts[tile]; };
  let_next_begin();
  wait_for_previous();
  const std::uint32_t row = blockIdx.x / kBlocks;
  float4 value[kGroups];
  float peak = 0;
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    constexpr std::uint32_t kNone = 0xFFFFFFFFU;
    const std::uint32_t i = Place::column(g);
    const bool inside = i < ffn;
    const std::uint32_t at[2] = {inside ? i : kNone, inside ? i + ffn : kNone};
    float4 x[2];  // of gate, then of up
    product_at<3>(product, row, at, 2 * ffn, parts_of, x);
    const auto add_bias = [&](const float* bias, float4& to_all) {
      if (inside && bias != nullptr) add_to(to_all, *reinterpret_cast<const float4*>(bias + i));
    };
    add_bias(gate_bias, x[0]);
    add_bias(up_bias, x[1]);
    value[g] = {activated<kActivation>(x[0].x, x[1].x), activated<kActivation>(x[0].y, x[1].y),
                activated<kActivation>(x[0].z, x[1].z), activated<kActivation>(x[0].w, x[1].w)};
    peak = fmaxf(peak, largest(value[g]));
  }
  write_row<Place>(value, 1.0F, reduce_row<kBlocks, kThreads>(peak, 0, scratch).x, row, ffn, to);
}

template <int kValue>
using Constant = std::integral_constant<int, kValue>;

// Calls launch(blocks of a row, threads of a block, groups of columns a thread), all as constants,
// with what suffices for a row; at most kMostBlocks of them.
template <int kMostBlocks, typename Launch>
void with_row(std::uint32_t cols, const Launch& launch) {
  const auto with_groups = [&](auto blocks, auto threads) {
    constexpr std::uint32_t kWidth = Row<blocks(), threads()>::kWidth;
    if (cols <= kWidth) {
      launch(blocks, threads, Constant<1>{});
    } else if (cols <= 2 * kWidth) {
      launch(blocks, threads, Constant<2>{});
    } else if (4 * kWidth >= kMostFewRowsCols || cols <= 4 * kWidth) {
      launch(blocks, threads, Constant<4>{});
    } else if constexpr (4 * kWidth < kMostFewRowsCols) {
      static_assert(8 * kWidth == kMostFewRowsCols);
      launch(blocks, threads, Constant<8>{});
    }
  };
  constexpr Constant<256> kSmall;
  if (!chains_kernels()) {
    with_groups(Constant<1>{}, Constant<1024>{});
  } else if (cols <= Row<1, kSmall>::kWidth) {
    launch(Constant<1>{}, kSmall, Constant<1>{});
  } else if (cols <= Row<2, kSmall>::kWidth) {
    launch(Constant<2>{}, kSmall, Constant<1>{});
  } else if (cols <= Row<4, kSmall>::kWidth) {
    launch(Constant<4>{}, kSmall, Constant<1>{});
  } else {
    with_groups(Constant<kMostBlocks>{}, kSmall);
  }
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
                         const HalfRows& to, float* normed, cudaStream_t stream) {
  // The order in which squares are added follows from the number of blocks, so rows have as many
  // whatever their number.
  with_row<4>(dim, [&](auto blocks, auto threads, auto groups) {
    launch_chained_clusters(blocks(), add_and_norm_kernel<blocks(), threads(), groups()>,
                            dim3(rows * blocks()), threads(), 0, stream, product, bias, dim, x,
                            weight, epsilon, to, normed);
  });
}

void launch_gated_parts(Activation activation, const PartialProduct& product,
                        const float* gate_bias, const float* up_bias, std::uint32_t rows,
                        std::uint32_t ffn, const HalfRows& to, cudaStream_t stream) {
  const auto launch = [&](auto blocks, auto threads, auto groups) {
    const auto kernel =
        activation == Activation::silu
            ? gated_parts_kernel<blocks(), threads(), groups(), Activation::silu>
            : gated_parts_kernel<blocks(), threads(), groups(), Activation::gelu_tanh>;
    launch_chained_clusters(blocks(), kernel, dim3(rows * blocks()), threads(), 0, stream, product,
                            gate_bias, up_bias, ffn, to);
  };
  constexpr std::uint32_t kFew = 16;
  if (rows <= kFew) {
    with_row<8>(ffn, launch);
  } else {
    with_row<4>(ffn, launch);
  }
}

}  // namespace edgerunner::cuda
