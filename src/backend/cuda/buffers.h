#pragma once

#include <cstdint>
#include <vector>

#include "arch/decoder_spec.h"
#include "backend/cuda/attention.h"
#include "backend/cuda/device.h"
#include "backend/cuda/mixture.h"
#include "backend/cuda/ops.h"
#include "backend/cuda/prefill_ops.h"
#include "backend/executor.h"

namespace edgerunner::cuda {

// The widest of every dimension over the layers: what scratch is sized by.
struct Widths {
  explicit Widths(const DecoderSpec& spec);
  std::uint32_t dim = 0;
  std::uint32_t q_dim = 0;
  std::uint32_t qkv_row = 0;
  std::uint32_t ffn = 0;         // of dense networks and of shared experts
  std::uint32_t expert_ffn = 0;  // of a row's chosen experts together
  std::uint32_t most_used = 0;   // experts of a row
  std::uint32_t pairs = 0;
  std::uint32_t vocab = 0;
};

// Everything that a forward pass writes, allocated once. Shapes beside the declarations, in
// elements; all floats.
struct Scratch {
  Scratch(const DecoderSpec& spec, const ExecutorOptions& options);
  static std::uint64_t bytes(const DecoderSpec& spec, const ExecutorOptions& options);

  DeviceBuffer x;         // [max_rows, dim]
  DeviceBuffer normed;    // [max_rows, dim]
  DeviceBuffer qkv;       // [max_rows, qkv_row]
  DeviceBuffer attended;  // [max_rows, q_dim]
  DeviceBuffer gate;      // [max_rows, ffn or expert_ffn, the larger]
  DeviceBuffer up;        // [max_rows, ffn or expert_ffn, the larger]
  DeviceBuffer branch;    // [max_rows, dim], where a block's output isn't added as it comes
  DeviceBuffer logits;    // [max_logit_rows, vocab]
  MixtureScratch mixture;
};

// What the tensor cores' forward pass needs besides.
struct HalfScratch {
  HalfScratch(const DecoderSpec& spec, const ExecutorOptions& options);
  static std::uint64_t bytes(const DecoderSpec& spec, const ExecutorOptions& options);
  // Whether the forward pass can run on the tensor cores: widths in multiples of 8.
  static bool supports(const DecoderSpec& spec);

  HalfRows rows(ColumnOrder order = ColumnOrder::natural) const {
    return {x.as<__half>(), scale.as<float>(), order};
  }
  AttentionPartials partials() const {
    return {part_sums.as<float>(), part_stats.as<float2>(), part_arrivals.as<std::uint32_t>(),
            part_count};
  }

  DeviceBuffer x;      // [max_rows, widest] or the chosen experts' [slots, ffn], f16
  DeviceBuffer scale;  // [max_rows] or [slots]
  // Matrices of a layer, or a part of the head, as weight_values values of f16; or, in a pass of
  // few rows, a product's parts (few_rows.h).
  DeviceBuffer work;
  std::size_t weight_values = 0;
  // Of attention in parts (attention_parts.h), at most kFewAttentionRows rows.
  DeviceBuffer part_sums;      // [rows, heads, part_count, head_dim], the widest layer's
  DeviceBuffer part_stats;     // [rows, heads, part_count, 2]
  DeviceBuffer part_arrivals;  // [rows, heads]
  std::uint32_t part_count = 0;
};

// The KV cache: one allocation, cut into layers.
class CachePool {
 public:
  CachePool(const DecoderSpec& spec, const ExecutorOptions& options);
  static std::uint64_t bytes(const DecoderSpec& spec, const ExecutorOptions& options);
  const DeviceCache& layer(std::size_t index) const { return layers_[index]; }

 private:
  DeviceBuffer memory_;
  std::vector<DeviceCache> layers_;
};

// Brings a batch's tokens, positions, page tables and what attention takes together to the device
// in one copy.
class BatchUpload {
 public:
  BatchUpload(const ExecutorOptions& options, const AttentionCut& cut);
  static std::uint64_t bytes(const ExecutorOptions& options);

  // The returned batch's arrays hold the batch once `stream` has come so far. The page tables reach
  // `further` positions past the rows.
  DeviceBatch upload(const Batch& batch, cudaStream_t stream, std::uint32_t further = 0);
  TokenId* tokens() const;  // of the batch, as the next
  std::uint32_t* positions() const;
  const std::uint32_t* logit_rows() const;  // [logit rows of the batch]
  const RowTile* tiles() const;             // [tile_count]
  std::uint32_t tile_count() const { return tile_count_; }
  AttentionPartList parts() const;  // of a batch of at most kFewAttentionRows rows
  // Of the batch, rounded up to a power of two: a launch that depends on it stays the same for
  // long.
  std::uint32_t part_count() const { return part_count_; }

 private:
  // Where the arrays of rows begin, in words: before them stand the number of parts, and before
  // that the parts themselves, which grow downwards. Behind them come the page tables. So one copy
  // brings what there is, and a batch of as many rows has its arrays in the same places.
  std::size_t rows_at() const;
  // The device's array of rows number `index`: tokens, positions, where each row's page table
  // begins, rows of logits, tiles (two words each).
  std::uint32_t* rows_array(std::uint32_t index) const;

  std::uint32_t max_rows_;
  std::uint32_t rows_ = 0;  // of the batch
  AttentionCut cut_;
  std::uint32_t tile_count_ = 0;
  std::uint32_t part_count_ = 0;
  PinnedBuffer host_;
  DeviceBuffer device_;
};

AttentionShape attention_shape(const LayerSpec& layer);

}  // namespace edgerunner::cuda
