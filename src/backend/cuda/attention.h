#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backend/cuda/attention_parts.h"
#include "backend/cuda/ops.h"
#include "backend/cuda/prefill_ops.h"

namespace edgerunner::cuda {

// Attention (launch_attention_f32) on the tensor cores, for a cache of f16 or e4m3 codes and heads
// of 64, 80, 96, 128 or 256. The results are averages of cached values, so f16 holds them as they
// are: to.scale is 1.
bool tensor_attention_supports(const AttentionShape& shape, KvPrecision kv);

// Of many rows: consecutive rows of one sequence that are computed together with the query heads of
// a kv head. Rows of a tile times heads of a group is at most kAttentionRows.
struct RowTile {
  std::uint32_t first = 0;
  std::uint32_t rows = 0;
};
void launch_attention_half(const AttentionShape& shape, const DeviceBatch& batch,
                           const RowTile* tiles, std::uint32_t tile_count, const float* qkv,
                           const DeviceCache& cache, const HalfRows& to, cudaStream_t stream);

// Of at most kFewAttentionRows rows: a sequence's positions are cut into parts, computed beside
// each other and joined. `list` is the batch's. Some `part_count` of its parts are worth launching
// blocks for; all are computed, whatever that number.
void launch_attention_few(const AttentionShape& shape, const DeviceBatch& batch,
                          const AttentionPartList& list, std::uint32_t part_count, const float* qkv,
                          const DeviceCache& cache, const AttentionPartials& partials,
                          const HalfRows& to, cudaStream_t stream);

}  // namespace edgerunner::cuda
