#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backend/cuda/ops.h"
#include "backend/cuda/prefill_ops.h"

// What LoRA adapters add to a product: scale * B (A x), in f32, for the rows that have the adapter.
// A row's sums are added up in an order of their own, whatever the rows beside it.

namespace edgerunner::cuda {

// An adapter's update of one matrix (LowRank), unpacked to f32.
struct DeviceLowRank {
  const float* a = nullptr;  // [rank, cols]; of the embedding [vocab, rank]
  const float* b = nullptr;  // [rank, rows]: transposed, so that neighbours read neighbours
  std::uint32_t rank = 0;    // 0: the adapter leaves the matrix as it is
  std::uint32_t cols = 0;
  std::uint32_t rows = 0;
  float scale = 0;
};

// Rows of which some have the adapter.
struct AdaptedRows {
  const float* scales = nullptr;          // [rows of the batch], of the user's choice; 0: without
  const std::uint32_t* chosen = nullptr;  // [rows], which of the batch they are; null: all of them
  std::uint32_t rows = 0;
};

// The rows that a product reads, one or the other: x[rows, cols].
struct AdapterInput {
  const float* x = nullptr;
  HalfRows half;
};

// low[rows, rank] = scale * A x; or, of the embedding, factor * scale times the tokens' rows of A.
void launch_adapt_down(const DeviceLowRank& update, const AdaptedRows& rows, const AdapterInput& x,
                       float* low, cudaStream_t stream);
void launch_adapt_lookup(const DeviceLowRank& update, const AdaptedRows& rows,
                         const TokenId* tokens, float factor, float* low, cudaStream_t stream);

// y += B low.
void launch_adapt_up(const DeviceLowRank& update, const AdaptedRows& rows, const float* low,
                     float* y, std::uint32_t y_stride, cudaStream_t stream);

}  // namespace edgerunner::cuda
