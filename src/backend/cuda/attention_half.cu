#include <cfloat>

#include "backend/cuda/chain.cuh"
#include "backend/cuda/mma.cuh"
#include "backend/cuda/prefill_ops.h"
#include "backend/cuda/ptx.cuh"
#include "backend/executor.h"

// Attention of many rows on the tensor cores, after FlashAttention-2 (Dao 2023): keys and values
// pass through shared memory a page at a time, scores never leave registers. A block takes a tile
// of consecutive rows and the query heads that share a kv head, packed as 64 rows of one matrix.

namespace edgerunner::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * 32;
constexpr int kKeys = static_cast<int>(kPageTokens);  // of a tile
static_assert(kKeys == 64 && kAttentionRows == kWarps * 16);

template <int kDim>
__device__ inline std::uint32_t chunk_at(int row, int chunk) {
  return static_cast<std::uint32_t>(row * kDim * 2 + ((chunk ^ (row & 7)) << 4));
}

template <int kDim>
__global__ void __launch_bounds__(kThreads)
    attention_kernel(AttentionShape shape, DeviceBatch batch, const RowTile* tiles,
                     const float* qkv, const __half* keys, const __half* values, HalfRows to_rows) {
  extern __shared__ __align__(128) std::uint8_t shared[];
  constexpr int kTileBytes = kKeys * kDim * 2;
  constexpr int kSteps = kDim / 16;
  constexpr int kChunks = kDim / 8;
  let_next_begin();
  wait_for_previous();
  const int lane = static_cast<int>(threadIdx.x & 31);
  const int warp = static_cast<int>(threadIdx.x / 32);
  // The last tiles see the most keys: they begin first.
  const RowTile tile = tiles[gridDim.x - 1 - blockIdx.x];
  const std::uint32_t kv = blockIdx.y;
  const std::uint32_t group = shape.heads / shape.kv_heads;
  const std::uint32_t position0 = batch.positions[tile.first];
  const std::uint32_t end = position0 + tile.rows;  // past the last row's position
  const std::uint32_t first_key =
      shape.window != 0 && position0 + 1 > shape.window ? position0 + 1 - shape.window : 0;
  const std::uint32_t* const pages = batch.pages + batch.page_offsets[tile.first];
  const std::uint32_t base = shared_address(shared);

  const auto fetch = [&](std::uint32_t page_index, std::uint32_t stage) {
    const std::size_t at =
        (static_cast<std::size_t>(pages[page_index]) * shape.kv_heads + kv) * kKeys * kDim;
    const std::uint32_t to = base + stage * 2 * kTileBytes;
#pragma unroll
    for (int i = 0; i < kKeys * kChunks / kThreads; ++i) {
      const int index = i * kThreads + static_cast<int>(threadIdx.x);
      const int row = index / kChunks;
      const int chunk = index % kChunks;
      // Slots past the last row hold nothing yet, perhaps not numbers: zeros take their place.
      const bool used = page_index * kKeys + static_cast<std::uint32_t>(row) < end;
      const std::size_t from = at + (used ? row * kDim + chunk * 8 : 0);
      copy_16(to + chunk_at<kDim>(row, chunk), keys + from, used);
      copy_16(to + kTileBytes + chunk_at<kDim>(row, chunk), values + from, used);
    }
    copy_commit();
  };

  // This lane's two rows of the packed matrix: 16 warp + lane / 4, and 8 below.
  std::uint32_t row[2];
  std::uint32_t head[2];
  bool valid[2];
  std::uint32_t query[kSteps][4];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const std::uint32_t m = 16 * warp + 8 * r + (lane >> 2);
    row[r] = m / group;
    head[r] = kv * group + m % group;
    valid[r] = row[r] < tile.rows;
    const float* const from =
        qkv + static_cast<std::size_t>(tile.first + (valid[r] ? row[r] : 0)) * shape.row() +
        head[r] * kDim + 2 * (lane & 3);
    const float scale = valid[r] ? shape.scale * 1.44269504F : 0.0F;  // scores in powers of two
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float2 q = *reinterpret_cast<const float2*>(from + 16 * step + 8 * half);
        query[step][2 * half + r] = pack_half2(q.x * scale, q.y * scale);
      }
    }
  }

  // Of a few rows' tile most warps have none: they only fetch.
  const bool works = 16U * warp / group < tile.rows;

  float sum[kDim / 8][4] = {};
  float peak[2] = {-FLT_MAX, -FLT_MAX};
  float total[2] = {0, 0};
  const auto add_page = [&](std::uint32_t page, std::uint32_t k_tile) {
    const std::uint32_t v_tile = k_tile + kTileBytes;

    float score[kKeys / 8][4] = {};
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int j = 0; j < kKeys / 16; ++j) {
        std::uint32_t b[4];
        const int key = 16 * j + (lane & 7) + ((lane >> 4) << 3);
        load_matrices(b, k_tile + chunk_at<kDim>(key, 2 * step + ((lane >> 3) & 1)));
        mma_f16(score[2 * j], query[step][0], query[step][1], query[step][2], query[step][3], b[0],
                b[1]);
        mma_f16(score[2 * j + 1], query[step][0], query[step][1], query[step][2], query[step][3],
                b[2], b[3]);
      }
    }
    if (page * kKeys + kKeys - 1 > position0 || shape.window != 0) {
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const std::uint32_t key = page * kKeys + 8 * j + 2 * (lane & 3) + (i & 1);
          const std::uint32_t position = position0 + row[i >> 1];
          if (key > position || (shape.window != 0 && key + shape.window <= position)) {
            score[j][i] = -INFINITY;
          }
        }
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float next = peak[r];
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j) {
        next = fmaxf(next, fmaxf(score[j][2 * r], score[j][2 * r + 1]));
      }
      next = fmaxf(next, __shfl_xor_sync(0xFFFFFFFFU, next, 1));
      next = fmaxf(next, __shfl_xor_sync(0xFFFFFFFFU, next, 2));
      const float shrink = exp2_fast(peak[r] - next);
      peak[r] = next;
      total[r] *= shrink;
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j) {
        score[j][2 * r] = exp2_fast(score[j][2 * r] - next);
        score[j][2 * r + 1] = exp2_fast(score[j][2 * r + 1] - next);
        total[r] += score[j][2 * r] + score[j][2 * r + 1];
      }
#pragma unroll
      for (int d = 0; d < kDim / 8; ++d) {
        sum[d][2 * r] *= shrink;
        sum[d][2 * r + 1] *= shrink;
      }
    }
#pragma unroll
    for (int j = 0; j < kKeys / 16; ++j) {
      const std::uint32_t a0 = pack_half2(score[2 * j][0], score[2 * j][1]);
      const std::uint32_t a1 = pack_half2(score[2 * j][2], score[2 * j][3]);
      const std::uint32_t a2 = pack_half2(score[2 * j + 1][0], score[2 * j + 1][1]);
      const std::uint32_t a3 = pack_half2(score[2 * j + 1][2], score[2 * j + 1][3]);
#pragma unroll
      for (int d = 0; d < kDim / 16; ++d) {
        std::uint32_t b[4];
        const int key = 16 * j + (lane & 15);
        load_matrices_transposed(b, v_tile + chunk_at<kDim>(key, 2 * d + (lane >> 4)));
        mma_f16(sum[2 * d], a0, a1, a2, a3, b[0], b[1]);
        mma_f16(sum[2 * d + 1], a0, a1, a2, a3, b[2], b[3]);
      }
    }
  };
  const std::uint32_t first_page = first_key / kKeys;
  const std::uint32_t last_page = (end - 1) / kKeys;
  fetch(first_page, 0);
  for (std::uint32_t page = first_page; page <= last_page; ++page) {
    const std::uint32_t stage = (page - first_page) & 1;
    if (page < last_page) {
      fetch(page + 1, stage ^ 1U);
      copy_wait<1>();
    } else {
      copy_wait<0>();
    }
    __syncthreads();
    if (works) add_page(page, base + stage * 2 * kTileBytes);
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    total[r] += __shfl_xor_sync(0xFFFFFFFFU, total[r], 1);
    total[r] += __shfl_xor_sync(0xFFFFFFFFU, total[r], 2);
    if (!valid[r]) continue;
    const float scale = 1.0F / total[r];
    __half* const to = to_rows.x + static_cast<std::size_t>(tile.first + row[r]) * shape.q_dim();
    const std::uint32_t first = head[r] * kDim + 2 * (lane & 3);
#pragma unroll
    for (int d = 0; d < kDim / 8; ++d) {
      *reinterpret_cast<std::uint32_t*>(to + column_place(to_rows.order, first + 8 * d)) =
          pack_half2(sum[d][2 * r] * scale, sum[d][2 * r + 1] * scale);
    }
    if (head[r] == 0 && (lane & 3) == 0) to_rows.scale[tile.first + row[r]] = 1.0F;
  }
}

template <int kDim>
void launch(const AttentionShape& shape, const DeviceBatch& batch, const RowTile* tiles,
            std::uint32_t tile_count, const float* qkv, const DeviceCache& cache,
            const HalfRows& to, cudaStream_t stream) {
  constexpr int kBytes = 4 * kKeys * kDim * 2;  // two stages of keys and values
  cudaFuncSetAttribute(attention_kernel<kDim>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  const dim3 grid(tile_count, shape.kv_heads);
  launch_chained(attention_kernel<kDim>, grid, kThreads, kBytes, stream, shape, batch, tiles, qkv,
                 static_cast<const __half*>(cache.keys), static_cast<const __half*>(cache.values),
                 to);
}

}  // namespace

bool tensor_attention_supports(const AttentionShape& shape, KvPrecision kv) {
  return kv == KvPrecision::f16 && shape.cap == 0 &&
         (shape.head_dim == 64 || shape.head_dim == 128) &&
         shape.heads / shape.kv_heads <= kAttentionRows;
}

void launch_attention_half(const AttentionShape& shape, const DeviceBatch& batch,
                           const RowTile* tiles, std::uint32_t tile_count, const float* qkv,
                           const DeviceCache& cache, const HalfRows& to, cudaStream_t stream) {
  if (shape.head_dim == 64) {
    launch<64>(shape, batch, tiles, tile_count, qkv, cache, to, stream);
  } else {
    launch<128>(shape, batch, tiles, tile_count, qkv, cache, to, stream);
  }
}

}  // namespace edgerunner::cuda
