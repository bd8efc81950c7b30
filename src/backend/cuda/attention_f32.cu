#include "backend/cuda/activate.cuh"
#include "backend/cuda/cache_values.cuh"
#include "backend/cuda/ops.h"
#include "backend/cuda/reduce.cuh"
#include "backend/executor.h"

// Attention in f32 for any head size and any precision of the cache: a block a row and query
// head, in tiles that begin at page borders, so that a row's order of additions depends on its
// position and window alone.

namespace edgerunner::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * 32;
constexpr int kOutputs = kMaxHeadDim / kThreads;  // of a thread

template <typename T>
__global__ void __launch_bounds__(kThreads)
    attention_kernel(AttentionShape shape, DeviceBatch batch, const float* qkv, CacheValues<T> keys,
                     CacheValues<T> values, float* out) {
  __shared__ float query[kMaxHeadDim];
  __shared__ float score[kPageTokens];
  const std::uint32_t row = blockIdx.y;
  const std::uint32_t head = blockIdx.x;
  const std::uint32_t dim = shape.head_dim;
  const std::uint32_t warp = threadIdx.x / 32;
  const std::uint32_t lane = threadIdx.x & 31;
  const std::uint32_t kv_head = head / (shape.heads / shape.kv_heads);
  const float* const q = qkv + static_cast<std::size_t>(row) * shape.row() + head * dim;
  for (std::uint32_t i = threadIdx.x; i < dim; i += kThreads) query[i] = q[i];
  __syncthreads();

  const std::uint32_t end = batch.positions[row] + 1;
  const std::uint32_t begin = shape.window != 0 && end > shape.window ? end - shape.window : 0;
  const std::uint32_t* const pages = batch.pages + batch.page_offsets[row];
  float peak = -INFINITY;
  float total = 0;
  float sum[kOutputs] = {};

  for (std::uint32_t tile = begin / kPageTokens; tile * kPageTokens < end; ++tile) {
    const std::size_t base =
        (static_cast<std::size_t>(pages[tile]) * shape.kv_heads + kv_head) * kPageTokens;
    for (std::uint32_t j = warp; j < kPageTokens; j += kWarps) {
      const std::uint32_t position = tile * kPageTokens + j;
      float dot = -INFINITY;
      if (position >= begin && position < end) {
        dot = 0;
        for (std::uint32_t i = lane; i < dim; i += 32) {
          dot = fmaf(query[i], keys.load((base + j) * dim + i), dot);
        }
        dot = capped(warp_sum(dot) * keys.scale(base + j) * shape.scale, shape.cap);
      }
      if (lane == 0) score[j] = dot;
    }
    __syncthreads();

    float tile_peak = peak;
    for (std::uint32_t j = 0; j < kPageTokens; ++j) tile_peak = fmaxf(tile_peak, score[j]);
    const float shrink = expf(peak - tile_peak);
    peak = tile_peak;
    total *= shrink;
    for (float& x : sum) x *= shrink;
    const std::uint32_t first = begin > tile * kPageTokens ? begin - tile * kPageTokens : 0;
    const std::uint32_t last =
        end - tile * kPageTokens < kPageTokens ? end - tile * kPageTokens : kPageTokens;
    for (std::uint32_t j = first; j < last; ++j) {
      const float weight = expf(score[j] - peak);
      total += weight;
      const float scaled = weight * values.scale(base + j);
      for (int o = 0; o < kOutputs; ++o) {
        const std::uint32_t i = threadIdx.x + o * kThreads;
        if (i < dim) sum[o] = fmaf(scaled, values.load((base + j) * dim + i), sum[o]);
      }
    }
    __syncthreads();
  }
  for (int o = 0; o < kOutputs; ++o) {
    const std::uint32_t i = threadIdx.x + o * kThreads;
    if (i < dim) {
      out[static_cast<std::size_t>(row) * shape.q_dim() + head * dim + i] = sum[o] / total;
    }
  }
}

}  // namespace

void launch_attention_f32(const AttentionShape& shape, const DeviceBatch& batch, const float* qkv,
                          const DeviceCache& cache, float* out, cudaStream_t stream) {
  const dim3 grid(shape.heads, batch.rows);
  visit_cache(cache, [&](auto keys, auto values) {
    attention_kernel<<<grid, kThreads, 0, stream>>>(shape, batch, qkv, keys, values, out);
  });
}

}  // namespace edgerunner::cuda
