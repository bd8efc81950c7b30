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

// This warp's positions in [first, last) of one kv head, every 16 * kDecodeWarps of them, for the
// heads [h0, h0 + 8) of a group; leaves sum, peak and total of each head in
// scratch [kDecodeWarps][scratch_heads][kDim + 4].
template <int kDim, typename PageOf>
__device__ inline void attend_on_tensor_cores(const __half* queries, float* scratch,
                                              std::uint32_t scratch_heads, const __half* keys,
                                              const __half* values, std::uint32_t kv_heads,
                                              std::uint32_t kv, std::uint32_t first,
                                              std::uint32_t last, std::uint32_t group,
                                              std::uint32_t h0, const PageOf& page_of) {
  static_assert(kDim % 64 == 0);
  constexpr int kChunks = kDim / 32;  // of 16 bytes that a lane reads of a key
  constexpr int kTiles = kDim / 16;   // of 16 output dimensions
  constexpr int kPieces = kDim / 64;  // of 16 bytes that a lane reads of a value
  const std::uint32_t warp = threadIdx.x / 32;
  const std::uint32_t lane = threadIdx.x & 31;
  const std::uint32_t row = lane >> 2;  // a position of the tile, or a head
  const std::uint32_t column = lane & 3;
  const auto offset = [&](std::uint32_t t) {
    return ((static_cast<std::size_t>(page_of(t)) * kv_heads + kv) * kPageTokens +
            t % kPageTokens) *
           kDim;
  };

  float sum[kTiles][4] = {};
  float peak[2] = {-FLT_MAX, -FLT_MAX};  // of heads 2 * column and 2 * column + 1
  float total[2] = {0, 0};               // of this lane's positions alone
  for (std::uint32_t base = first + warp * 16; base < last; base += kDecodeWarps * 16) {
    uint4 value[4];  // a piece of positions 2 column, 2 column + 1, and both + 8
    const auto load_piece = [&](int piece) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const std::uint32_t t = base + 2 * column + (r & 1) + 8 * (r >> 1);
        const bool used = t < last;
        const __half* const from = values + (used ? offset(t) : 0) + row * (kDim / 8) + 8 * piece;
        value[r] = used ? __ldcg(reinterpret_cast<const uint4*>(from)) : uint4{0, 0, 0, 0};
      }
    };
    load_piece(0);

    float score[4] = {0, 0, 0, 0};  // (row, 2 column), (row, + 1), (row + 8, ...)
                                    // Two chunks of a key at a time: registers are short.
#pragma unroll
    for (int half = 0; half < kChunks / 2; ++half) {
      uint4 key[2][2];  // of positions row, row + 8
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const std::uint32_t t = base + row + 8 * r;
        const bool used = t < last;
        const __half* const from = keys + (used ? offset(t) : 0) + 64 * half + 8 * column;
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          key[r][c] =
              used ? __ldcg(reinterpret_cast<const uint4*>(from + 32 * c)) : uint4{0, 0, 0, 0};
        }
      }
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        // Queries lie as f16 in the order of their dimensions; this lane's head is `row`.
        const uint4 q = *reinterpret_cast<const uint4*>(queries + (h0 + row) * kDim + 64 * half +
                                                        32 * c + 8 * column);
        mma_f16(score, key[0][c].x, key[1][c].x, key[0][c].y, key[1][c].y, q.x, q.y);
        mma_f16(score, key[0][c].z, key[1][c].z, key[0][c].w, key[1][c].w, q.z, q.w);
      }
    }
    if (base + row >= last) score[0] = score[1] = -FLT_MAX;
    if (base + row + 8 >= last) score[2] = score[3] = -FLT_MAX;
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
    // Rows `row` and `row + 8` of output tile i are dimensions row * kDim / 8 + 2 i and + 2 i + 1.
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      if (piece > 0) load_piece(piece);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const auto word = [&](int r) {
          const uint4& v = value[r];
          return i == 0 ? v.x : (i == 1 ? v.y : (i == 2 ? v.z : v.w));
        };
        mma_f16(sum[4 * piece + i], __byte_perm(word(0), word(1), 0x5410),
                __byte_perm(word(0), word(1), 0x7632), __byte_perm(word(2), word(3), 0x5410),
                __byte_perm(word(2), word(3), 0x7632), p0, p1);
      }
    }
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) {
#pragma unroll
    for (int distance = 4; distance < 32; distance *= 2) {
      total[h] += __shfl_xor_sync(0xFFFFFFFFU, total[h], distance);
    }
    const std::uint32_t head = 2 * column + h;
    if (h0 + head >= group) continue;
    float* const to = scratch + (warp * scratch_heads + head) * (kDim + 4);
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
