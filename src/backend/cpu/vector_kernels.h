#pragma once

#include <cstddef>
#include <cstdint>

#include "arch/decoder_spec.h"
#include "backend/cpu/kv_layout.h"
#include "base/cpu_features.h"

namespace edgerunner::cpu {

// Everything but the matrix products, vectorised, per instruction set. Every function's result for
// a row depends on that row alone, to the bit.

// The rotation of one position, in RopeTable's form; rotates the first `dims` of a head.
struct Rotation {
  const float* cosine = nullptr;  // [dims]
  const float* sine = nullptr;    // [dims], negated for the first of each pair
  std::uint32_t dims = 0;
  RopeLayout layout = RopeLayout::interleaved;
};

// Attention runs in splits: kSplitPages pages from fixed borders on. Within a split pages follow
// one another with a running maximum and sum (Dao et al. 2022, FlashAttention), then splits are
// merged in order. The order of a query's sums is thus given by its position and window alone, and
// splits may run on different threads. Four pages are 256 tokens: work enough to outweigh a merge,
// and eight shares a KV head at depth 2048.
inline constexpr std::uint32_t kSplitPages = 4;

// What a split gives for one row (a query head of a token), a record of floats:
//   [0] the largest score, [1] the sum of the weights, [16, 16 + padded(head_dim)) their sum of
//   values. Scores are in units of log2: queries are scaled by attention_scale * log2(e).
inline constexpr std::uint32_t kRecordHeader = 16;
constexpr std::uint32_t attention_record_floats(std::uint32_t head_dim) {
  return kRecordHeader + KvHeadLayout::padded(head_dim);
}

// Consecutive tokens of a sequence, with the query heads that share one KV head.
// Row r is head r % heads of token r / heads.
struct AttentionTile {
  const float* queries = nullptr;  // [tokens * heads, head_dim], rotated and scaled
  std::uint32_t position = 0;      // of the first token
  std::uint32_t tokens = 0;
  std::uint32_t heads = 0;
  std::uint32_t window = 0;              // 0: all
  float cap = 0;                         // scores become cap * tanh(score / cap); 0: they stay
  const std::byte* cache = nullptr;      // this layer's and head's block in page 0 of the pool
  std::size_t page_stride = 0;           // bytes from a page to the next
  const std::uint32_t* pages = nullptr;  // of the sequence
  const std::byte* next = nullptr;  // the block that this thread is likely to read next, if any
  KvHeadLayout layout;

  std::uint32_t rows() const { return tokens * heads; }
  // Positions [first_visible(t), position + t] are seen by token t.
  std::uint32_t first_visible(std::uint32_t token) const {
    const std::uint32_t end = position + token + 1;
    return window == 0 || end <= window ? 0 : end - window;
  }
  std::uint32_t first_page() const { return first_visible(0) / kPageTokens; }
  std::uint32_t end_page() const { return (position + tokens - 1) / kPageTokens + 1; }
  std::uint32_t first_split() const { return first_page() / kSplitPages; }
  std::uint32_t end_split() const { return (end_page() - 1) / kSplitPages + 1; }
};

struct VectorKernels {
  Isa isa;

  // out = x / sqrt(mean(x^2) + epsilon) * weight. `out` may be x.
  void (*rms_norm)(const float* x, const float* weight, std::uint32_t size, float epsilon,
                   float* out);

  // out = (x - mean(x)) / sqrt(variance(x) + epsilon) * weight + bias. `out` may be x.
  void (*layer_norm)(const float* x, const float* weight, const float* bias, std::uint32_t size,
                     float epsilon, float* out);

  // out = gelu(x) by its tanh approximation. `out` may be x.
  void (*gelu)(const float* x, std::uint32_t size, float* out);

  // out = rotate(x) * scale, [head_dim]; `out` must not be x.
  void (*rotate)(const float* x, const Rotation& rotation, std::uint32_t head_dim, float scale,
                 float* out);

  // Writes `tokens` keys or values, [tokens, head_dim] with `stride` floats between them, to a
  // page's block of a KV head from token `first` on. A value beyond the cache's range becomes the
  // largest in range. `scratch` holds attention_scratch_bytes.
  void (*store_keys)(const float* keys, std::size_t stride, std::uint32_t tokens,
                     std::uint32_t first, const KvHeadLayout& layout, std::byte* block,
                     std::byte* scratch);
  void (*store_values)(const float* values, std::size_t stride, std::uint32_t tokens,
                       std::uint32_t first, const KvHeadLayout& layout, std::byte* block);

  // Attention of a tile over one split: writes its rows' records.
  void (*attend)(const AttentionTile& tile, std::uint32_t split, float* records,
                 std::byte* scratch);
  // Merges the records of the next split into those of the splits before it.
  void (*merge)(float* into, const float* from, std::uint32_t rows, std::uint32_t head_dim);
  // out = the sum of values times the reciprocal of the sum of weights, [head_dim].
  void (*finish)(const float* record, std::uint32_t head_dim, float* out);

  // x = cap * tanh(scale * x / cap), or scale * x where cap is 0.
  void (*soft_cap)(float* x, std::uint32_t size, float scale, float cap);

  // 2^x for x <= 0, 0 below 2^-125; for tests of its error.
  void (*exp2)(const float* x, std::uint32_t size, float* out);
};

// Bytes of scratch, 64-byte aligned and one a thread, for store_keys and attend.
std::size_t attention_scratch_bytes(std::uint32_t max_head_dim, std::uint32_t max_tile_rows);

const VectorKernels& vector_kernels(Isa isa);

}  // namespace edgerunner::cpu
