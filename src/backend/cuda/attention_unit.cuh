#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/cuda/attention.h"
#include "backend/cuda/attention_tile.cuh"
#include "backend/cuda/half_rows.cuh"
#include "backend/cuda/reduce.cuh"

// What a block of a few rows' attention (attention_few.cu) works on, and its beginning and end: the
// queries, and joining parts.

namespace edgerunner::cuda {

inline constexpr int kFewRows = static_cast<int>(kFewTileRows);
// Keys of a page that a warp takes, and warps that share a page.
inline constexpr int kStrip = 16;
inline constexpr int kPageWarps = static_cast<int>(kPageTokens) / kStrip;

template <typename T, int kDim>
struct FewShape {
  using Rows = TileRows<T, kDim>;
  // Eight warps walk through two pages at a time, so that a sequence takes half as many steps; the
  // registers of the widest heads suffice for four.
  static constexpr int kWarps = kDim <= 128 ? 8 : 4;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kPages = kWarps / kPageWarps;  // at a time
  // A strip of keys, or of values, and its scales.
  static constexpr int kStripBytes = kStrip * Rows::kPitch + (Rows::kScaled ? 4 * kStrip : 0);
  // Of keys and values. The memory wants about 40 KB asked for by each multiprocessor: one stage of
  // heads of 128 is 68 KB a block.
  static constexpr int kStages = Rows::kPitch > 160 ? 1 : 2;
  // Afterwards the same memory takes the warp's sums; the gap keeps four rows in different banks.
  static constexpr int kSumStride = kDim + 8;
  static constexpr int kWarpBytes =
      std::max(2 * kStages * kStripBytes, kFewRows* kSumStride* static_cast<int>(sizeof(float)));
  // The rows' queries, and later the weights of their parts.
  static constexpr int kQueryBytes = kFewRows * TileRows<__half, kDim>::kPitch;
  static_assert(kQueryBytes >= kFewRows * static_cast<int>(kMostParts * sizeof(float)));
  // The blocks that a multiprocessor may take ask for at most 196 KB of its shared memory, which
  // the products for a few rows leave it with. If it had to be divided anew between shared memory
  // and L1 in every layer, that would cost 20 us.
  static constexpr int kBytes = kWarps * kWarpBytes + kQueryBytes;
  static constexpr int kBlocks = 2;  // of a multiprocessor
  static_assert(kBlocks * kBytes < 192 * 1024);
};

// A tile's part of one kv head and what there is of it, alike in all threads.
struct KvHeadPart {
  AttentionPart part;
  std::uint32_t column = 0;  // of the tile's columns
  std::uint32_t kv = 0;
  std::uint32_t packed = 0;    // first packed row
  std::uint32_t position = 0;  // of the first row
  std::uint32_t end = 0;       // past the last row's
  std::uint32_t parts = 0;     // of the tile
  std::uint32_t lowest = 0;    // of those, counted from position 0
  std::uint32_t first_key = 0;
  std::uint32_t last_key = 0;  // one past it

  __device__ void find(const AttentionShape& shape, std::uint32_t part_pages,
                       std::uint32_t position0) {
    position = position0;
    end = position + part.rows;
    const std::uint32_t tokens = part_tokens(part_pages, position);
    const std::uint32_t all = parts_at(tokens, position);
    const std::uint32_t seen =
        shape.window != 0 && position + 1 > shape.window ? position + 1 - shape.window : 0;
    lowest = min(seen / tokens, all - 1);
    parts = all - lowest;
    const std::uint32_t begin = (lowest + part.part) * tokens;
    first_key = max(seen, begin);
    last_key = part.part + 1 == parts ? end : begin + tokens;
  }
};

// Joins all parts of a unit's tile; every one is in device memory. Lanes stand for parts by their
// number from position 0, so that the order doesn't depend on what other rows of the tile see.
template <int kDim, int kThreads>
__device__ void join_parts(const AttentionShape& shape, const AttentionPartials& partials,
                           const KvHeadPart& unit, std::uint32_t rows, float* weights,
                           const HalfRows& to) {
  const std::uint32_t group = shape.heads / shape.kv_heads;
  const std::uint32_t most = partials.most_parts;
  const std::uint32_t lowest = unit.lowest % most;
  const auto slot = [&](std::uint32_t m) {
    const std::uint32_t packed = unit.packed + m;
    return static_cast<std::size_t>(unit.part.first + packed / group) * shape.heads +
           unit.kv * group + packed % group;
  };
  const std::uint32_t lane = threadIdx.x & 31;
#pragma unroll 1
  for (std::uint32_t m = threadIdx.x / 32; m < rows; m += kThreads / 32) {
    const bool used = lane < most && (lane + most - lowest) % most < unit.parts;
    float2 stats = {-FLT_MAX, 0};
    if (used) stats = __ldcg(partials.stats + slot(m) * most + lane);
    const float weight = exp2_fast(stats.x - warp_max(stats.x));
    weights[m * kMostParts + lane] = weight / warp_sum(weight * stats.y);
  }
  __syncthreads();
#pragma unroll 1
  for (std::uint32_t i = threadIdx.x; i < rows * (kDim / 2); i += kThreads) {
    const std::uint32_t m = i / (kDim / 2);
    const std::uint32_t col = 2 * (i % (kDim / 2));
    const std::size_t row = slot(m);
    const float* const sums = partials.sums + row * most * kDim + col;
    float2 sum = {0, 0};
    std::uint32_t at = lowest;
#pragma unroll 4
    for (std::uint32_t k = 0; k < unit.parts; ++k) {
      const float2 x = __ldcg(reinterpret_cast<const float2*>(sums + at * kDim));
      sum.x = fmaf(weights[m * kMostParts + at], x.x, sum.x);
      sum.y = fmaf(weights[m * kMostParts + at], x.y, sum.y);
      at = at + 1 == most ? 0 : at + 1;
    }
    const auto batch_row = row / shape.heads;
    const auto head = static_cast<std::uint32_t>(row % shape.heads);
    store_pair(to, batch_row, shape.q_dim(), head * kDim + col, __floats2half2_rn(sum.x, sum.y));
    if (head == 0 && col == 0) to.scale[batch_row] = 1.0F;
  }
}

// The unit's queries in shared memory, for scores in powers of two.
template <typename T, int kDim, int kThreads>
__device__ void write_queries(const AttentionShape& shape, const KvHeadPart& unit,
                              std::uint32_t rows, const float* qkv, std::uint8_t* to) {
  const std::uint32_t group = shape.heads / shape.kv_heads;
  const float scale = shape.scale * kLog2E;
  for (std::uint32_t i = threadIdx.x; i < rows * (kDim / 2); i += kThreads) {
    const std::uint32_t m = i / (kDim / 2);
    const auto pair = static_cast<int>(i % (kDim / 2));
    const int col = WarpAttention<T, kDim, kStrip>::column(pair / 8, pair / 4 % 2, pair % 4);
    const std::uint32_t packed = unit.packed + m;
    const float2 q = *reinterpret_cast<const float2*>(
        qkv + static_cast<std::size_t>(unit.part.first + packed / group) * shape.row() +
        (unit.kv * group + packed % group) * kDim + col);
    *reinterpret_cast<std::uint32_t*>(to + m * TileRows<__half, kDim>::kPitch + pair * 4) =
        pack_half2(q.x * scale, q.y * scale);
  }
}
// Zeros in place of those that there aren't.
template <int kDim, int kThreads>
__device__ void clear_queries(std::uint32_t rows, std::uint8_t* to) {
  constexpr std::uint32_t kWords = TileRows<__half, kDim>::kPitch / 4;
  for (std::uint32_t i = rows * kWords + threadIdx.x; i < kFewRows * kWords; i += kThreads) {
    reinterpret_cast<std::uint32_t*>(to)[i] = 0;
  }
}

}  // namespace edgerunner::cuda
