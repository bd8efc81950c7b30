#pragma once

#include <cuda_fp16.h>

#include <cfloat>
#include <cstdint>

#include "backend/cuda/decode_plan.h"
#include "backend/cuda/mma.cuh"
#include "backend/executor.h"

// The part of a decode attention that reads the cache, on the tensor cores: 16 positions and up to
// 8 query heads at a time, transposed so that no half of a tile is wasted. Scores S^T[16, 8] = K
// Q^T, sums O^T[head_dim, 8] += V^T P^T.
//
// A sum doesn't depend on the order of its terms' names, so the inner index of K Q^T is permuted: a
// lane reads 16 neighbouring bytes of a key, where the fragment's own order would have it read 4.
// Source of the fragments' layout: PTX ISA, "mma.m16n8k16 with floating point type".

namespace edgerunner::cuda {

// Where the cached keys and values of one kv head lie, and the new position's, which are still on
// their way to the cache.
template <typename PageOf>
struct CachedHead {
  const __half* keys;
  const __half* values;
  std::uint32_t kv_heads;
  std::uint32_t kv;
  std::uint32_t first;
  std::uint32_t last;  // past the last position to read
  std::uint32_t position;
  const __half* new_key;    // [head_dim], in shared memory
  const __half* new_value;  // [head_dim]
  PageOf page_of;

  __device__ bool reads(std::uint32_t t) const { return t >= first && t < last; }
  __device__ bool cached(std::uint32_t t) const { return reads(t) && t != position; }
  __device__ std::size_t offset(std::uint32_t t, std::uint32_t dim) const {
    return ((static_cast<std::size_t>(page_of(t)) * kv_heads + kv) * kPageTokens +
            t % kPageTokens) *
           dim;
  }
};

// What a lane holds of sixteen positions' keys and values. Loaded before the queries are known, so
// that the trip to the L2 is over when they come; and the next sixteen positions' as soon as these
// have been used.
template <int kDim>
struct CacheTile {
  static constexpr int kChunks = kDim / 32;  // of 16 bytes that a lane reads of a key
  static constexpr int kPieces = kDim / 64;  // of 16 bytes that a lane reads of a value

  uint4 key[2][kChunks];    // of positions row, row + 8 of the tile
  uint4 value[4][kPieces];  // of positions 2 column, 2 column + 1, and both + 8

  __device__ static std::uint32_t row() { return (threadIdx.x & 31) >> 2; }
  __device__ static std::uint32_t column() { return threadIdx.x & 3; }
  __device__ static std::uint32_t value_position(int r) {
    return 2 * column() + (r & 1) + 8 * (r >> 1);
  }

  // The tile begins at `base`, a multiple of 16, and `at` of the cached values: a page holds all of
  // it, so that one look at the page table finds it.
  static_assert(kPageTokens % 16 == 0);
  template <typename Head>
  __device__ void load_keys(const Head& head, std::uint32_t base, std::size_t at) {
    const __half* const from = head.keys + at + row() * kDim + 8 * column();
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const bool used = head.cached(base + row() + 8 * r);
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        key[r][c] = used ? __ldcg(reinterpret_cast<const uint4*>(from + 8 * r * kDim + 32 * c))
                         : uint4{0, 0, 0, 0};
      }
    }
  }
  template <typename Head>
  __device__ void load_values(const Head& head, std::uint32_t base, std::size_t at) {
    const __half* const from = head.values + at + row() * (kDim / 8);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const bool used = head.cached(base + value_position(r));
#pragma unroll
      for (int piece = 0; piece < kPieces; ++piece) {
        value[r][piece] = used ? __ldcg(reinterpret_cast<const uint4*>(
                                     from + value_position(r) * kDim + 8 * piece))
                               : uint4{0, 0, 0, 0};
      }
    }
  }
  template <typename Head>
  __device__ void load(const Head& head, std::uint32_t base) {
    const std::size_t at = head.offset(base, kDim);
    load_keys(head, base, at);
    load_values(head, base, at);
  }
  // Puts the new position in its place, once it stands in shared memory.
  template <typename Head>
  __device__ void patch_keys(const Head& head, std::uint32_t base) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (base + row() + 8 * r != head.position || head.position >= head.last) continue;
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        key[r][c] = *reinterpret_cast<const uint4*>(head.new_key + 8 * column() + 32 * c);
      }
    }
  }
  template <typename Head>
  __device__ void patch_values(const Head& head, std::uint32_t base) {
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      if (base + value_position(r) != head.position || head.position >= head.last) continue;
#pragma unroll
      for (int piece = 0; piece < kPieces; ++piece) {
        value[r][piece] =
            *reinterpret_cast<const uint4*>(head.new_value + row() * (kDim / 8) + 8 * piece);
      }
    }
  }
};

// This warp's positions from `base`, a multiple of 16, on, every 16 * kDecodeWarps of them, the
// first of them in `cached`, for the heads [h0, h0 + 8) of a group; leaves sum, peak and total of
// each head in scratch [kDecodeWarps][scratch_heads][kDim + 4].
template <int kDim, typename Head>
__device__ inline void attend_on_tensor_cores(const __half* queries, float* scratch,
                                              std::uint32_t scratch_heads, const Head& head,
                                              std::uint32_t base, CacheTile<kDim>& cached,
                                              std::uint32_t group, std::uint32_t h0) {
  static_assert(kDim % 64 == 0);
  using Tile = CacheTile<kDim>;
  constexpr int kTiles = kDim / 16;  // of 16 output dimensions
  const std::uint32_t warp = threadIdx.x / 32;
  const std::uint32_t row = Tile::row();  // a position of the tile, or a head
  const std::uint32_t column = Tile::column();

  float sum[kTiles][4] = {};
  float peak[2] = {-FLT_MAX, -FLT_MAX};  // of heads 2 * column and 2 * column + 1
  float total[2] = {0, 0};               // of this lane's positions alone
  while (base < head.last) {
    cached.patch_keys(head, base);
    // Two sums, so that a product doesn't wait for the one before: (row, 2 column), (row, + 1),
    // (row + 8, ...).
    float score[4] = {0, 0, 0, 0};
    float other[4] = {0, 0, 0, 0};
#pragma unroll
    for (int c = 0; c < Tile::kChunks; ++c) {
      // Queries lie as f16 in the order of their dimensions; this lane's head is `row`.
      const uint4 q =
          *reinterpret_cast<const uint4*>(queries + (h0 + row) * kDim + 32 * c + 8 * column);
      mma_f16(score, cached.key[0][c].x, cached.key[1][c].x, cached.key[0][c].y, cached.key[1][c].y,
              q.x, q.y);
      mma_f16(other, cached.key[0][c].z, cached.key[1][c].z, cached.key[0][c].w, cached.key[1][c].w,
              q.z, q.w);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) score[i] += other[i];
    const std::uint32_t next_base = base + kDecodeWarps * 16;
    std::size_t next_at = 0;
    if (next_base < head.last) {
      next_at = head.offset(next_base, kDim);
      cached.load_keys(head, next_base, next_at);
    }
    if (!head.reads(base + row)) score[0] = score[1] = -FLT_MAX;
    if (!head.reads(base + row + 8)) score[2] = score[3] = -FLT_MAX;
    float weight[4];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float next = fmaxf(score[h], score[h + 2]);
#pragma unroll
      for (int distance = 4; distance < 32; distance *= 2) {
        next = fmaxf(next, __shfl_xor_sync(0xFFFFFFFFU, next, distance));
      }
      next = fmaxf(next, peak[h]);
      const float shrink = exp2_fast(peak[h] - next);
      peak[h] = next;
      weight[h] = exp2_fast(score[h] - next);
      weight[h + 2] = exp2_fast(score[h + 2] - next);
      total[h] = fmaf(total[h], shrink, weight[h] + weight[h + 2]);
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        sum[tile][h] *= shrink;
        sum[tile][h + 2] *= shrink;
      }
    }
    const std::uint32_t p0 = transpose_8x8(pack_half2(weight[0], weight[1]));
    const std::uint32_t p1 = transpose_8x8(pack_half2(weight[2], weight[3]));
    cached.patch_values(head, base);
    // Rows `row` and `row + 8` of output tile i are dimensions row * kDim / 8 + 2 i and + 2 i + 1.
#pragma unroll
    for (int piece = 0; piece < Tile::kPieces; ++piece) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const auto word = [&](int r) {
          const uint4& v = cached.value[r][piece];
          return i == 0 ? v.x : (i == 1 ? v.y : (i == 2 ? v.z : v.w));
        };
        mma_f16(sum[4 * piece + i], __byte_perm(word(0), word(1), 0x5410),
                __byte_perm(word(0), word(1), 0x7632), __byte_perm(word(2), word(3), 0x5410),
                __byte_perm(word(2), word(3), 0x7632), p0, p1);
      }
    }
    if (next_base < head.last) cached.load_values(head, next_base, next_at);
    base = next_base;
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) {
#pragma unroll
    for (int distance = 4; distance < 32; distance *= 2) {
      total[h] += __shfl_xor_sync(0xFFFFFFFFU, total[h], distance);
    }
    const std::uint32_t of_group = 2 * column + h;
    if (h0 + of_group >= group) continue;
    float* const to = scratch + (warp * scratch_heads + of_group) * (kDim + 4);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      *reinterpret_cast<float2*>(to + row * (kDim / 8) + 2 * tile) = {sum[tile][h],
                                                                      sum[tile][h + 2]};
    }
    if (row == 0) {
      to[kDim] = peak[h];
      to[kDim + 1] = total[h];
    }
  }
}

}  // namespace edgerunner::cuda
