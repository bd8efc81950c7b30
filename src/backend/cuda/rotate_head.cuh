#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/cache_values.cuh"
#include "backend/cuda/ops.h"
#include "backend/cuda/reduce.cuh"
#include "backend/executor.h"

// One head of a row on its way to attention: queries are normed (where the model says so) and
// rotated, keys too, and keys and values go into the cache. A block a head, of whole warps, and of
// as many threads as the head has elements at least: thread i has element i.

namespace edgerunner::cuda {

// Threads of the block.
constexpr unsigned head_threads(const AttentionShape& shape) {
  return (shape.head_dim + 31) / 32 * 32;
}

class RowHead {
 public:
  // Finds what doesn't depend on the element. Heads are the queries', then the keys', then the
  // values'.
  __device__ RowHead(const AttentionShape& shape, const RotateWeights& weights,
                     const DeviceBatch& batch, std::uint32_t row, std::uint32_t head)
      : query_(head < shape.heads), key_(!query_ && head < shape.heads + shape.kv_heads) {
    const std::uint32_t i = threadIdx.x;
    inside_ = i < shape.head_dim;
    const float* const norm = query_ ? weights.q_norm : (key_ ? weights.k_norm : nullptr);
    normed_ = norm != nullptr;
    norm_ = normed_ && inside_ ? norm[i] : 0.0F;
    const std::uint32_t pairs = weights.pairs;
    turned_ = (query_ || key_) && i < 2 * pairs;
    if (turned_) {
      const bool neighbours = weights.layout == RopeLayout::interleaved;
      const std::uint32_t pair = neighbours ? i >> 1 : i % pairs;
      second_ = neighbours ? (i & 1) != 0 : i >= pairs;
      first_at_ = neighbours ? 2 * pair : pair;
      second_at_ = neighbours ? 2 * pair + 1 : pair + pairs;
      turn_ = weights.table[row * pairs + pair];
    }
    if (query_) return;
    const std::uint32_t position = batch.positions[row];
    const std::size_t page = batch.pages[batch.page_offsets[row] + position / kPageTokens];
    const std::uint32_t kv_head = head - shape.heads - (key_ ? 0 : shape.kv_heads);
    at_ = (page * shape.kv_heads + kv_head) * kPageTokens + position % kPageTokens;
  }

  // Takes element x to `query`, the thread's place in the row's queries, or into the cache.
  template <typename T>
  __device__ void store(const AttentionShape& shape, float epsilon, float x, float* query,
                        const CacheValues<T>& keys, const CacheValues<T>& values) const {
    __shared__ float head[kMaxHeadDim];
    __shared__ float scratch[kMaxHeadDim / 32];
    const std::uint32_t i = threadIdx.x;
    if (query_ || key_) {
      if (normed_) {
        const float squares = block_sum(x * x, scratch);
        x = x * (1.0F / sqrtf(squares / static_cast<float>(shape.head_dim) + epsilon)) * norm_;
      }
      if (inside_) head[i] = x;
      __syncthreads();
      if (turned_) {
        const float a = head[first_at_];
        const float b = head[second_at_];
        x = second_ ? a * turn_.y + b * turn_.x : a * turn_.x - b * turn_.y;
      }
    }
    if (query_) {
      if (inside_) *query = x;
      return;
    }
    const CacheValues<T>& to = key_ ? keys : values;
    float scale = 1;
    if constexpr (CacheValues<T>::kScaled) {
      scale = code_scale(block_max(fabsf(x), scratch));
      if (i == 0) to.scales[at_] = scale;
    }
    if (inside_) to.store(at_ * shape.head_dim + i, x, scale);
  }

 private:
  bool query_;
  bool key_;
  bool inside_ = false;
  bool normed_ = false;
  bool turned_ = false;
  bool second_ = false;  // of its pair
  std::uint32_t first_at_ = 0;
  std::uint32_t second_at_ = 0;
  float norm_ = 0;
  float2 turn_ = {0, 0};
  std::size_t at_ = 0;  // of keys and values: their row of the layer's cache
};

}  // namespace edgerunner::cuda
