#include <algorithm>

#include "backend/cuda/attention.h"
#include "backend/cuda/attention_unit.cuh"
#include "backend/cuda/chain.cuh"

// Attention of a few rows, after Flash-Decoding (Dao et al. 2023): a block takes one part of the
// positions that a tile of rows sees, for one kv head, and the last block of a tile to finish joins
// its parts. Inside a block a warp takes 16 keys of each page, or of every other one, through
// stages of its own, so that warps wait for nobody.

namespace edgerunner::cuda {
namespace {

template <typename T, int kDim>
__global__ void __launch_bounds__(FewShape<T, kDim>::kThreads, FewShape<T, kDim>::kBlocks)
    attention_kernel(AttentionShape shape, DeviceBatch batch, AttentionPartList list,
                     const float* qkv, CacheValues<T> keys, CacheValues<T> values,
                     AttentionPartials partials, HalfRows to) {
  using Shape = FewShape<T, kDim>;
  using Warp = WarpAttention<T, kDim, kStrip>;
  constexpr int kWarps = Shape::kWarps;
  constexpr std::uint32_t kStages = Shape::kStages;
  extern __shared__ __align__(128) std::uint8_t shared[];
  __shared__ float2 warp_stats[kWarps][kFewRows];  // peak, total
  __shared__ bool joins;
  const int lane = static_cast<int>(threadIdx.x & 31);
  const std::uint32_t warp = threadIdx.x / 32;
  const std::uint32_t group = shape.heads / shape.kv_heads;
  const std::uint32_t row_blocks = (group + kFewRows - 1) / kFewRows;  // of a kv head
  const std::uint32_t columns = shape.kv_heads * row_blocks;
  const std::uint32_t most_window_parts =
      shape.window == 0 ? kMostParts
                        : (shape.window + kFewRows) / (list.part_pages * kPageTokens) + 2;
  std::uint8_t* const own = shared + warp * Shape::kWarpBytes;
  std::uint8_t* const queries = shared + kWarps * Shape::kWarpBytes;
  const std::uint32_t ring = shared_address(own);
  const auto key_stage = [&](std::uint32_t i) { return i % kStages * 2 * Shape::kStripBytes; };

  const auto begin_in_earnest = [] {
    wait_for_previous();
    let_next_begin();
  };

  const std::uint32_t units = *list.count * columns;
  for (std::uint32_t index = blockIdx.x; index < units; index += gridDim.x) {
    KvHeadPart unit;
    unit.part = *(list.end - 1 - index / columns);
    if (unit.part.part >= most_window_parts) break;  // as in all that follow
    unit.column = index % columns;
    unit.kv = unit.column / row_blocks;
    unit.packed = unit.column % row_blocks * kFewRows;
    const std::uint32_t* const pages = batch.pages + batch.page_offsets[unit.part.first];
    unit.find(shape, list.part_pages, batch.positions[unit.part.first]);
    if (unit.part.part >= unit.parts) continue;

    // As many pages a round as there are warps for, a strip of a page each. Parts begin at
    // multiples of that many pages, so that the warp of a key depends on its position alone.
    constexpr std::uint32_t kRoundTokens = Shape::kPages * kPageTokens;
    const std::uint32_t first_round = unit.first_key / kRoundTokens;
    const std::uint32_t rounds = (unit.last_key - 1) / kRoundTokens - first_round + 1;
    const std::uint32_t last_page = (unit.last_key - 1) / kPageTokens;
    const auto first_of = [&](std::uint32_t i) {
      return (first_round + i) * kRoundTokens + warp * kStrip;
    };
    const auto seen = [&](std::uint32_t i) {
      return i < rounds && first_of(i) < unit.last_key && first_of(i) + kStrip > unit.first_key;
    };
    std::uint32_t page = 0;  // a lane each, of 32 rounds
    std::size_t cached = 0;  // first row of the strip asked for
    const auto fetch = [&](std::uint32_t to, const CacheValues<T>& from, std::uint32_t used) {
      fetch_rows<T, kDim, kStrip, 32>(to, from.codes + cached * kDim, used, lane);
      if constexpr (Warp::kScaled) {
        fetch_scales<kStrip>(to + kStrip * Warp::Rows::kPitch, from.scales + cached, lane);
      }
    };

    const std::uint32_t rows =
        min(static_cast<std::uint32_t>(kFewRows), unit.part.rows * group - unit.packed);
    clear_queries<kDim, Shape::kThreads>(rows, queries);
    Warp attention;
    attention.begin();
    std::uint32_t positions[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      positions[r] = unit.position + (unit.packed + 8 * r + (lane >> 2)) / group;
    }
    // What earlier passes cached is fetched while previous kernels are still at work, as the lists
    // above are read: those write the batch's own positions alone, and a pass begins with a kernel
    // outside the chain, which waits for everything before it.
    const std::uint32_t cached_before = unit.position - unit.part.before;
#pragma unroll 1
    for (std::uint32_t round = 0; round < rounds + kStages; ++round) {
      const std::uint32_t i = round - kStages;  // the round that is computed
      const bool computes = round >= kStages && seen(i);
      const bool asks = seen(round);
      if (round == kStages) {
        begin_in_earnest();
        write_queries<T, kDim, Shape::kThreads>(shape, unit, rows, qkv, queries);
        __syncthreads();
      } else if (asks && first_of(round) + kStrip > cached_before) {
        begin_in_earnest();
      }
      const std::uint32_t k_tile = key_stage(i);
      const std::uint32_t v_tile = k_tile + Shape::kStripBytes;
      const auto scales = [&](std::uint32_t tile) {
        return reinterpret_cast<const float*>(own + tile + kStrip * Warp::Rows::kPitch);
      };
      typename Warp::Scores score;
      // All but the last of 2 * kStages copies: the keys, then the values that were asked for
      // first.
      copy_wait<2 * kStages - 1>();
      __syncwarp();
      if (computes) {
        Warp::multiply_keys(
            ring + k_tile,
            [&](int step) { return Warp::shared_query(shared_address(queries), step); }, score);
        Warp::finish_scores(scales(k_tile), shape.cap * kLog2E, score);
      }
      __syncwarp();
      const std::uint32_t used = unit.end - first_of(round);
      if (round % 32 == 0) page = pages[min(first_of(round + lane) / kPageTokens, last_page)];
      if (asks) {
        const std::size_t at = __shfl_sync(0xFFFFFFFFU, page, static_cast<int>(round % 32));
        cached = (at * shape.kv_heads + unit.kv) * kPageTokens + warp % kPageWarps * kStrip;
        fetch(ring + key_stage(round), keys, used);
      }
      copy_commit();
      copy_wait<2 * kStages - 1>();
      __syncwarp();
      if (computes) {
        attention.weigh(score, scales(v_tile), first_of(i), positions, shape.window);
        attention.add_values(ring + v_tile, score);
      }
      __syncwarp();
      if (asks) fetch(ring + key_stage(round) + Shape::kStripBytes, values, used);
      copy_commit();
    }
    attention.finish_totals();

    // The warps' sums, side by side, then joined.
    auto* const sums = reinterpret_cast<float*>(own);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int m = 8 * r + (lane >> 2);
#pragma unroll
      for (int step = 0; step < Warp::kSteps; ++step) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          *reinterpret_cast<float2*>(sums + m * Shape::kSumStride + Warp::column(step, half)) =
              attention.output(step, half, r);
        }
      }
      if ((lane & 3) == 0) warp_stats[warp][m] = {attention.peak[r], attention.total[r]};
    }
    __syncthreads();
#pragma unroll 1
    for (std::uint32_t i = threadIdx.x; i < rows * (kDim / 2); i += Shape::kThreads) {
      const std::uint32_t m = i / (kDim / 2);
      const std::uint32_t col = 2 * (i % (kDim / 2));
      float peak = warp_stats[0][m].x;
      for (int w = 1; w < kWarps; ++w) peak = fmaxf(peak, warp_stats[w][m].x);
      float total = 0;
      float2 sum = {0, 0};
      for (int w = 0; w < kWarps; ++w) {
        const float weight = exp2_fast(warp_stats[w][m].x - peak);
        const float2 x = *reinterpret_cast<const float2*>(shared + w * Shape::kWarpBytes +
                                                          (m * Shape::kSumStride + col) * 4);
        total = fmaf(weight, warp_stats[w][m].y, total);
        sum.x = fmaf(weight, x.x, sum.x);
        sum.y = fmaf(weight, x.y, sum.y);
      }
      const std::uint32_t packed = unit.packed + m;
      const std::uint32_t row = unit.part.first + packed / group;
      const std::uint32_t head = unit.kv * group + packed % group;
      if (unit.parts == 1) {
        const float scale = 1.0F / total;
        store_pair(to, row, shape.q_dim(), head * kDim + col,
                   __floats2half2_rn(sum.x * scale, sum.y * scale));
        if (head == 0 && col == 0) to.scale[row] = 1.0F;
      } else {
        const std::size_t slot =
            (static_cast<std::size_t>(row) * shape.heads + head) * partials.most_parts +
            (unit.lowest + unit.part.part) % partials.most_parts;
        *reinterpret_cast<float2*>(partials.sums + slot * kDim + col) = sum;
        if (col == 0) partials.stats[slot] = {peak, total};
      }
    }
    if (unit.parts > 1) {
      std::uint32_t* const arrivals = partials.arrivals + unit.part.first * columns + unit.column;
      __syncthreads();
      if (threadIdx.x == 0) joins = count_in_order(arrivals) == unit.parts - 1;
      __syncthreads();
      if (joins) {
        join_parts<kDim, Shape::kThreads>(shape, partials, unit, rows,
                                          reinterpret_cast<float*>(queries), to);
        if (threadIdx.x == 0) *arrivals = 0;
      }
    }
    __syncthreads();
  }
  begin_in_earnest();
}

}  // namespace

void launch_attention_few(const AttentionShape& shape, const DeviceBatch& batch,
                          const AttentionPartList& list, std::uint32_t part_count, const float* qkv,
                          const DeviceCache& cache, const AttentionPartials& partials,
                          const HalfRows& to, cudaStream_t stream) {
  visit_tiles(cache, shape.head_dim, [&](auto keys, auto values, auto dim) {
    using Value = std::remove_pointer_t<decltype(keys.codes)>;
    using Shape = FewShape<Value, dim()>;
    const auto kernel = attention_kernel<Value, dim()>;
    static const cudaError_t allowed =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Shape::kBytes);
    static_cast<void>(allowed);  // a launch says what is wrong
    // Blocks go on to further parts, so any number of them will do.
    const std::uint32_t group = shape.heads / shape.kv_heads;
    const std::uint32_t columns = shape.kv_heads * ((group + kFewRows - 1) / kFewRows);
    const std::uint32_t most =
        static_cast<std::uint32_t>(device_attribute<cudaDevAttrMultiProcessorCount>()) *
        Shape::kBlocks;
    const dim3 grid(std::clamp(part_count * columns, 1U, most));
    launch_chained(kernel, grid, Shape::kThreads, Shape::kBytes, stream, shape, batch, list, qkv,
                   keys, values, partials, to);
  });
}

}  // namespace edgerunner::cuda
