#include <cfloat>

#include "backend/cuda/chain.cuh"
#include "backend/cuda/mixture_ops.h"
#include "backend/cuda/ops.h"
#include "backend/cuda/reduce.cuh"

namespace edgerunner::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

// A warp an expert, of up to kRows rows. The first weights are on their way before the activations
// are there.
constexpr int kRouterWarps = 4;
constexpr int kRouterAhead = 16;  // float4 of a lane: all of 2048 columns

template <int kRows>
__global__ void __launch_bounds__(kRouterWarps * 32)
    router_kernel(DeviceMatrix w, const float* x, std::uint32_t rows, float* scores) {
  const std::uint32_t expert = blockIdx.x * kRouterWarps + threadIdx.x / 32;
  const std::uint32_t lane = threadIdx.x & 31;
  const std::uint32_t quads = expert < w.rows ? w.cols / 4 : 0;
  const auto* const weights =
      reinterpret_cast<const float4*>(w.data + static_cast<std::size_t>(expert) * w.row_bytes);
  float4 ahead[kRouterAhead];
  const auto fetch = [&](std::uint32_t first) {
#pragma unroll
    for (int k = 0; k < kRouterAhead; ++k) {
      const std::uint32_t at = first + 32 * k + lane;
      ahead[k] = at < quads ? weights[at] : float4{0, 0, 0, 0};
    }
  };
  fetch(0);
  wait_for_previous();
  let_next_begin();
  const std::uint32_t row0 = blockIdx.y * kRows;
  float sum[kRows] = {};
  for (std::uint32_t first = 0; first < quads; first += 32 * kRouterAhead) {
    if (first > 0) fetch(first);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (row0 + r >= rows) break;
      const auto* const from =
          reinterpret_cast<const float4*>(x + static_cast<std::size_t>(row0 + r) * w.cols);
#pragma unroll
      for (int k = 0; k < kRouterAhead; ++k) {
        const std::uint32_t at = first + 32 * k + lane;
        const float4 v = at < quads ? from[at] : float4{0, 0, 0, 0};
        sum[r] = fmaf(ahead[k].x, v.x, sum[r]);
        sum[r] = fmaf(ahead[k].y, v.y, sum[r]);
        sum[r] = fmaf(ahead[k].z, v.z, sum[r]);
        sum[r] = fmaf(ahead[k].w, v.w, sum[r]);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const float score = warp_sum(sum[r]);
    if (lane == 0 && quads > 0 && row0 + r < rows) {
      scores[static_cast<std::size_t>(row0 + r) * w.rows + expert] = score;
    }
  }
}

// A warp a row. A lane has every 32nd probability, as an integer of the same order: its bits and 1,
// or 0 once it has been chosen.
__global__ void choose_kernel(std::uint32_t count, std::uint32_t used, bool normalised,
                              const float* scores, std::uint32_t rows, ExpertRows to) {
  extern __shared__ std::uint32_t shared[];  // [kWarps, count + used]
  wait_for_previous();
  let_next_begin();
  const std::uint32_t warp = threadIdx.x / 32;
  const std::uint32_t row = blockIdx.x * kWarps + warp;
  if (row >= rows) return;
  const std::uint32_t lane = threadIdx.x & 31;
  const float* const score = scores + static_cast<std::size_t>(row) * count;
  std::uint32_t* const keys = shared + warp * (count + used);
  std::uint32_t* const chosen = keys + count;

  float peak = -FLT_MAX;
  for (std::uint32_t i = lane; i < count; i += 32) peak = fmaxf(peak, score[i]);
  peak = warp_max(peak);
  float total = 0;
  for (std::uint32_t i = lane; i < count; i += 32) {
    const float probability = expf(score[i] - peak);
    total += probability;
    keys[i] = __float_as_uint(probability) + 1;
  }
  total = warp_sum(total);

  float kept = 0;
  for (std::uint32_t rank = 0; rank < used; ++rank) {
    std::uint32_t key = 0;
    std::uint32_t expert = 0;
    for (std::uint32_t i = lane; i < count; i += 32) {
      if (keys[i] > key) {
        key = keys[i];
        expert = i;
      }
    }
    const std::uint32_t best = __reduce_max_sync(0xFFFFFFFFU, key);
    expert = __reduce_min_sync(0xFFFFFFFFU, key == best ? expert : ~0U);
    kept += __uint_as_float(best - 1);
    if ((expert & 31) == lane) {
      keys[expert] = 0;
      chosen[rank] = best - 1;
      to.experts[static_cast<std::size_t>(row) * used + rank] = expert;
    }
  }
  __syncwarp();
  const float divisor = normalised ? kept : total;
  for (std::uint32_t rank = lane; rank < used; rank += 32) {
    to.weights[static_cast<std::size_t>(row) * used + rank] =
        __uint_as_float(chosen[rank]) / divisor;
  }
}

__device__ std::uint32_t block_count(std::uint32_t x, std::uint32_t* scratch) {
  x = __reduce_add_sync(0xFFFFFFFFU, x);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) scratch[threadIdx.x / 32] = x;
  __syncthreads();
  std::uint32_t sum = 0;
  for (int i = 0; i < kWarps; ++i) sum += scratch[i];
  return sum;
}

// A block an expert: it counts everybody's slots and so knows where its own begin.
__global__ void group_kernel(std::uint32_t used, std::uint32_t slots, std::uint32_t tile_rows,
                             ExpertRows to) {
  extern __shared__ std::uint32_t counts[];  // [experts]
  __shared__ std::uint32_t scratch[kWarps];
  wait_for_previous();
  let_next_begin();
  const std::uint32_t expert = blockIdx.x;
  const std::uint32_t count = gridDim.x;
  for (std::uint32_t i = threadIdx.x; i < count; i += kThreads) counts[i] = 0;
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < slots; i += kThreads)
    atomicAdd(counts + to.experts[i], 1);
  __syncthreads();
  std::uint32_t first = 0;
  std::uint32_t tile = 0;
  for (std::uint32_t i = threadIdx.x; i < expert; i += kThreads) {
    first += counts[i];
    tile += (counts[i] + tile_rows - 1) / tile_rows;
  }
  first = block_count(first, scratch);
  tile = block_count(tile, scratch);
  const std::uint32_t mine = counts[expert];
  const std::uint32_t tiles = (mine + tile_rows - 1) / tile_rows;
  if (expert == count - 1 && threadIdx.x == 0) *to.tile_count = tile + tiles;
  if (mine == 0) return;
  for (std::uint32_t i = threadIdx.x; i < tiles; i += kThreads) {
    const std::uint32_t at = i * tile_rows;
    to.tiles[tile + i] = {expert, first + at, mine - at < tile_rows ? mine - at : tile_rows};
  }

  // Each thread has a run of choices; its first slot follows those of the threads before it.
  const std::uint32_t run = (slots + kThreads - 1) / kThreads;
  const std::uint32_t begin = threadIdx.x * run < slots ? threadIdx.x * run : slots;
  const std::uint32_t end = begin + run < slots ? begin + run : slots;
  std::uint32_t own = 0;
  for (std::uint32_t i = begin; i < end; ++i) own += to.experts[i] == expert ? 1 : 0;
  std::uint32_t up_to = own;
  const std::uint32_t lane = threadIdx.x & 31;
  for (std::uint32_t distance = 1; distance < 32; distance *= 2) {
    const std::uint32_t before = __shfl_up_sync(0xFFFFFFFFU, up_to, distance);
    if (lane >= distance) up_to += before;
  }
  __syncthreads();
  if (lane == 31) scratch[threadIdx.x / 32] = up_to;
  __syncthreads();
  std::uint32_t slot = first + up_to - own;
  for (std::uint32_t warp = 0; warp < threadIdx.x / 32; ++warp) slot += scratch[warp];
  for (std::uint32_t i = begin; i < end; ++i) {
    if (to.experts[i] != expert) continue;
    to.slots[i] = slot;
    to.sources[slot] = i / used;
    ++slot;
  }
}

__global__ void combine_kernel(std::uint32_t used, ExpertRows experts, const float* outputs,
                               const float* share, std::uint32_t dim, float* branch) {
  wait_for_previous();
  let_next_begin();
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  const std::size_t row = blockIdx.y;
  if (i >= dim) return;
  float* const to = branch + row * dim + i;
  float sum = share == nullptr ? 0.0F : *to / (1.0F + expf(-share[row]));
  for (std::uint32_t rank = 0; rank < used; ++rank) {
    const std::size_t slot = experts.slots[row * used + rank];
    sum = fmaf(experts.weights[row * used + rank], outputs[slot * dim + i], sum);
  }
  *to = sum;
}

}  // namespace

void launch_route_few(const DeviceMatrix& router, const float* x, std::uint32_t rows, float* scores,
                      cudaStream_t stream) {
  if (router.type != ElementType::f32 || router.cols % 4 != 0) {
    launch_matmul_f32(router, {x, router.cols, scores, router.rows, nullptr, rows, false}, stream);
    return;
  }
  const unsigned blocks = (router.rows + kRouterWarps - 1) / kRouterWarps;
  constexpr int kRows = 4;
  if (rows == 1) {
    launch_chained(router_kernel<1>, dim3(blocks), kRouterWarps * 32, 0, stream, router, x, rows,
                   scores);
  } else {
    launch_chained(router_kernel<kRows>, dim3(blocks, (rows + kRows - 1) / kRows),
                   kRouterWarps * 32, 0, stream, router, x, rows, scores);
  }
}

void launch_choose_experts(const MixtureSpec& spec, const float* scores, std::uint32_t rows,
                           const ExpertRows& to, cudaStream_t stream) {
  launch_chained(choose_kernel, dim3((rows + kWarps - 1) / kWarps), kThreads,
                 kWarps * (spec.count + spec.used) * sizeof(std::uint32_t), stream, spec.count,
                 spec.used, spec.normalised, scores, rows, to);
}

void launch_group_by_expert(const MixtureSpec& spec, std::uint32_t rows, std::uint32_t tile_rows,
                            const ExpertRows& to, cudaStream_t stream) {
  launch_chained(group_kernel, dim3(spec.count), kThreads, spec.count * sizeof(std::uint32_t),
                 stream, spec.used, rows * spec.used, tile_rows, to);
}

void launch_combine_experts(const MixtureSpec& spec, const ExpertRows& experts,
                            const float* outputs, const float* share, std::uint32_t rows,
                            std::uint32_t dim, float* branch, cudaStream_t stream) {
  const dim3 grid((dim + kThreads - 1) / kThreads, rows);
  launch_chained(combine_kernel, grid, kThreads, 0, stream, spec.used, experts, outputs, share, dim,
                 branch);
}

}  // namespace edgerunner::cuda
