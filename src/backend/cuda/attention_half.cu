#include <algorithm>

#include "backend/cuda/attention.h"
#include "backend/cuda/attention_tile.cuh"
#include "backend/cuda/chain.cuh"
#include "backend/cuda/half_rows.cuh"

// Attention of many rows on the tensor cores: a block takes a tile of consecutive rows and the
// query heads that share a kv head, packed as 64 rows of one matrix, 16 a warp, and walks through
// the sequence's keys and values, which all warps share.

namespace edgerunner::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * 32;
static_assert(kAttentionRows == kWarps * 16);

template <typename T, int kDim>
struct WideShape {
  using Rows = TileRows<T, kDim>;
  // Keys of a tile: the widest heads' sums and queries leave registers for few scores.
  static constexpr int kKeys = kDim > 128 ? 32 : 64;
  static_assert(kPageTokens % kKeys == 0);
  static constexpr int kRowBytes = kKeys * Rows::kPitch;
  static constexpr int kTileBytes = kRowBytes + (Rows::kScaled ? 4 * kKeys : 0);
  static constexpr int kBytes = 4 * kTileBytes;  // two stages of keys and values
};

template <typename T, int kDim>
__global__ void __launch_bounds__(kThreads)
    attention_kernel(AttentionShape shape, DeviceBatch batch, const RowTile* tiles,
                     const float* qkv, CacheValues<T> keys, CacheValues<T> values, HalfRows to) {
  using Shape = WideShape<T, kDim>;
  constexpr int kKeys = Shape::kKeys;
  using Warp = WarpAttention<T, kDim, kKeys>;
  extern __shared__ __align__(128) std::uint8_t shared[];
  let_next_begin();
  wait_for_previous();
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread & 31;
  const std::uint32_t warp = threadIdx.x / 32;
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

  const auto fetch = [&](std::uint32_t step, std::uint32_t stage) {
    const std::uint32_t key = step * kKeys;
    const std::size_t row =
        (static_cast<std::size_t>(pages[key / kPageTokens]) * shape.kv_heads + kv) * kPageTokens +
        key % kPageTokens;
    const std::uint32_t k_tile = base + stage * 2 * Shape::kTileBytes;
    const std::uint32_t v_tile = k_tile + Shape::kTileBytes;
    fetch_rows<T, kDim, kKeys, kThreads>(k_tile, keys.codes + row * kDim, end - key, thread);
    fetch_rows<T, kDim, kKeys, kThreads>(v_tile, values.codes + row * kDim, end - key, thread);
    if constexpr (Warp::kScaled) {
      fetch_scales<kKeys>(k_tile + Shape::kRowBytes, keys.scales + row, thread);
      fetch_scales<kKeys>(v_tile + Shape::kRowBytes, values.scales + row, thread);
    }
    copy_commit();
  };

  Warp attention;
  attention.begin();
  QueryFragment query[Warp::kSteps];
  // This lane's two rows of the packed matrix.
  std::uint32_t row[2];
  std::uint32_t head[2];
  std::uint32_t positions[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const std::uint32_t m = 16 * warp + 8 * r + (lane >> 2);
    row[r] = m / group;
    head[r] = kv * group + m % group;
    positions[r] = position0 + row[r];
    Warp::load_query(
        r, qkv + static_cast<std::size_t>(tile.first + row[r]) * shape.row() + head[r] * kDim,
        shape.scale * kLog2E, row[r] < tile.rows, query);
  }
  // Of a few rows' tile most warps have none: they only fetch.
  const bool works = 16U * warp / group < tile.rows;

  const std::uint32_t first_step = first_key / kKeys;
  const std::uint32_t last_step = (end - 1) / kKeys;
  fetch(first_step, 0);
  for (std::uint32_t step = first_step; step <= last_step; ++step) {
    const std::uint32_t stage = (step - first_step) & 1;
    if (step < last_step) {
      fetch(step + 1, stage ^ 1U);
      copy_wait<1>();
    } else {
      copy_wait<0>();
    }
    __syncthreads();
    if (works) {
      const std::uint32_t k_at = stage * 2 * Shape::kTileBytes;
      const std::uint32_t v_at = k_at + Shape::kTileBytes;
      const auto scales = [&](std::uint32_t at) {
        return reinterpret_cast<const float*>(shared + at + Shape::kRowBytes);
      };
      typename Warp::Scores score;
      Warp::multiply_keys(
          base + k_at, [&](int i) { return query[i]; }, score);
      Warp::finish_scores(scales(k_at), shape.cap * kLog2E, score);
      attention.weigh(score, scales(v_at), step * kKeys, positions, shape.window);
      attention.add_values(base + v_at, score);
    }
    __syncthreads();
  }
  attention.finish_totals();
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (row[r] >= tile.rows) continue;
    const float scale = 1.0F / attention.total[r];
#pragma unroll
    for (int step = 0; step < Warp::kSteps; ++step) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float2 x = attention.output(step, half, r);
        store_pair(to, tile.first + row[r], shape.q_dim(),
                   head[r] * kDim + Warp::column(step, half),
                   __floats2half2_rn(x.x * scale, x.y * scale));
      }
    }
    if (head[r] == 0 && (lane & 3) == 0) to.scale[tile.first + row[r]] = 1.0F;
  }
}

}  // namespace

bool tensor_attention_supports(const AttentionShape& shape, KvPrecision kv) {
  return kv != KvPrecision::f32 && tile_head_dim(shape.head_dim) &&
         shape.heads / shape.kv_heads <= kAttentionRows;
}

void launch_attention_half(const AttentionShape& shape, const DeviceBatch& batch,
                           const RowTile* tiles, std::uint32_t tile_count, const float* qkv,
                           const DeviceCache& cache, const HalfRows& to, cudaStream_t stream) {
  visit_tiles(cache, shape.head_dim, [&](auto keys, auto values, auto dim) {
    using Value = std::remove_pointer_t<decltype(keys.codes)>;
    constexpr int kBytes = WideShape<Value, dim()>::kBytes;
    const auto kernel = attention_kernel<Value, dim()>;
    static const cudaError_t allowed =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
    static_cast<void>(allowed);  // a launch says what is wrong
    const dim3 grid(tile_count, shape.kv_heads);
    launch_chained(kernel, grid, kThreads, kBytes, stream, shape, batch, tiles, qkv, keys, values,
                   to);
  });
}

}  // namespace edgerunner::cuda
