#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "arch/decoder_spec.h"
#include "backend/cuda/norm.h"
#include "backend/cuda/segment.h"
#include "edgerunner/types.h"

// The operations of a forward pass of any number of rows in f32, one kernel each. What a row
// becomes depends on that row alone, to the bit: every reduction's order is fixed by the shapes,
// never by the number of rows. `row` strides are in floats.

namespace edgerunner::cuda {

// A batch as the device sees it. All arrays are in device memory.
struct DeviceBatch {
  const TokenId* tokens = nullptr;           // [rows]
  const std::uint32_t* positions = nullptr;  // [rows]
  const std::uint32_t* page_offsets =
      nullptr;                           // [rows], where the row's page table begins in pages
  const std::uint32_t* pages = nullptr;  // page tables, one after another
  std::uint32_t rows = 0;
};

// One layer's keys and values: [pages, kv_heads, kPageTokens, head_dim] each, f16, f32, or (q8)
// e4m3 codes, which their position's and head's scale turns into values.
struct DeviceCache {
  void* keys = nullptr;
  void* values = nullptr;
  KvPrecision precision = KvPrecision::f16;
  float* key_scales = nullptr;  // [pages, kv_heads, kPageTokens]; null where there are none
  float* value_scales = nullptr;
};

// The heads of a layer, and where queries, keys and values lie in a row of `qkv`:
// [heads * head_dim | kv_heads * head_dim | kv_heads * head_dim].
struct AttentionShape {
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t window = 0;
  float scale = 0;
  float cap = 0;  // scores become cap * tanh(score / cap); 0: they stay

  constexpr std::uint32_t q_dim() const { return heads * head_dim; }
  constexpr std::uint32_t kv_dim() const { return kv_heads * head_dim; }
  constexpr std::uint32_t row() const { return q_dim() + 2 * kv_dim(); }
};

// x[rows, dim] = scale * the tokens' rows of the table.
void launch_embed(const DeviceMatrix& table, const DeviceBatch& batch, float scale, float* x,
                  cudaStream_t stream);

// y = norm(x), row by row; y may be x. Where `chosen` is given, row i of y is made from row
// chosen[i] of x.
struct NormRows {
  const float* x = nullptr;
  std::uint32_t x_stride = 0;
  float* y = nullptr;
  std::uint32_t y_stride = 0;
  std::uint32_t rows = 0;
  std::uint32_t dim = 0;
  const std::uint32_t* chosen = nullptr;
};
void launch_norm(const Norm& norm, const NormRows& io, cudaStream_t stream);

// x += scale * norm(branch), both [rows, dim]: what a block adds to the residual stream.
void launch_add_branch(const float* branch, const Norm& norm, float scale, std::uint32_t rows,
                       std::uint32_t dim, float* x, cudaStream_t stream);

// y[row] (+)= W x[row] + bias, for x [rows] of stride x_stride and y of stride y_stride.
struct MatmulRows {
  const float* x = nullptr;
  std::uint32_t x_stride = 0;
  float* y = nullptr;
  std::uint32_t y_stride = 0;
  const float* bias = nullptr;  // [w.rows], or null
  std::uint32_t rows = 0;
  bool add = false;  // to what y holds
};
void launch_matmul_f32(const DeviceMatrix& w, const MatmulRows& io, cudaStream_t stream);

// table[rows, pairs] = magnitude * (cos, sin) of position * inverse_frequencies, in double.
void launch_rope_table(const DeviceBatch& batch, const double* inverse_frequencies,
                       std::uint32_t pairs, double magnitude, float2* table, cudaStream_t stream);

// Normalises (where weights are given) and rotates the queries of `qkv` in place, and the keys on
// their way into the cache; copies the values into the cache.
struct RotateWeights {
  const float* q_norm = nullptr;
  const float* k_norm = nullptr;
  float epsilon = 0;
  const float2* table = nullptr;  // [rows, pairs]
  std::uint32_t pairs = 0;
  RopeLayout layout = RopeLayout::interleaved;
};
void launch_rotate_and_cache(const AttentionShape& shape, const RotateWeights& weights,
                             const DeviceBatch& batch, float* qkv, const DeviceCache& cache,
                             cudaStream_t stream);

// out[rows, heads * head_dim] = softmax(capped(scale * q.k)) v over the positions that each row
// sees, in tiles of a page with a running maximum.
void launch_attention_f32(const AttentionShape& shape, const DeviceBatch& batch, const float* qkv,
                          const DeviceCache& cache, float* out, cudaStream_t stream);

// gate = activation(gate) * up, elementwise over `count`; activation(gate) where up is null.
void launch_activate(Activation activation, float* gate, const float* up, std::uint64_t count,
                     cudaStream_t stream);

// logits = scale * logits, then, where there is a cap, cap * tanh(logits / cap).
void launch_cap_logits(float* logits, std::uint64_t count, float scale, float cap,
                       cudaStream_t stream);

// Copies the first `tokens` positions of a page to another, in one layer.
void launch_copy_page(const AttentionShape& shape, const DeviceCache& cache, std::uint32_t from,
                      std::uint32_t to, std::uint32_t tokens, cudaStream_t stream);

}  // namespace edgerunner::cuda
