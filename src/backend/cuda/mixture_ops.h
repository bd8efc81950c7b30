#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

#include "arch/decoder_spec.h"
#include "backend/cuda/prefill_ops.h"
#include "backend/cuda/segment.h"

// The operations of a mixture of experts. A row's choice of an expert is a slot; slots are ordered
// by expert, and among equals by row, so that an expert's weights are read once for all its rows.
// The order is found on the device, so kernels are launched for the most tiles that there can be,
// and those past the last one end at once.

namespace edgerunner::cuda {

// Consecutive slots of one expert, which a product computes together.
struct ExpertTile {
  std::uint32_t expert = 0;
  std::uint32_t first = 0;
  std::uint32_t rows = 0;
};

// Which rows go through which experts; all in device memory. slots = rows * used.
struct ExpertRows {
  std::uint32_t* experts = nullptr;     // [rows, used], by descending probability
  float* weights = nullptr;             // [rows, used]
  std::uint32_t* slots = nullptr;       // [rows, used], where each choice's slot is
  std::uint32_t* sources = nullptr;     // [slots], the row of a slot
  ExpertTile* tiles = nullptr;          // [most_tiles]
  std::uint32_t* tile_count = nullptr;  // [1]
};

// Every expert may have one tile that is not full.
constexpr std::uint32_t most_tiles(std::uint32_t slots, std::uint32_t experts,
                                   std::uint32_t tile_rows) {
  return std::min(slots, slots / tile_rows + experts);
}

// scores[rows, count] = router x for a few rows x[rows, dim], all in f32.
void launch_route_few(const DeviceMatrix& router, const float* x, std::uint32_t rows, float* scores,
                      cudaStream_t stream);

// The experts of each row by its router scores [rows, count]; of equals the first.
void launch_choose_experts(const MixtureSpec& spec, const float* scores, std::uint32_t rows,
                           const ExpertRows& to, cudaStream_t stream);

// Orders the slots by expert and cuts them into tiles of tile_rows at most.
void launch_group_by_expert(const MixtureSpec& spec, std::uint32_t rows, std::uint32_t tile_rows,
                            const ExpertRows& to, cudaStream_t stream);

// y[slot] = W[expert of the slot] x[row of the slot].
struct ExpertProduct {
  DeviceMatrix w;                          // [count * outputs, cols], expert after expert
  std::uint32_t outputs = 0;               // of each
  const std::uint32_t* sources = nullptr;  // [slots], or null: slot i reads row i of x
  const ExpertTile* tiles = nullptr;
  const std::uint32_t* tile_count = nullptr;
  std::uint32_t most_tiles = 0;
  std::uint32_t tile_rows = 0;
  float* y = nullptr;  // [slots, outputs]
  // Another matrix of the same shape and type for the same rows, and what becomes of it; none where
  // also_y is null. For launch_experts_half alone.
  DeviceMatrix also_w = {};
  float* also_y = nullptr;
};
// In f32, adding up as launch_matmul_f32 does; tiles are of 1 or kExpertRowsF32 rows.
inline constexpr std::uint32_t kExpertRowsF32 = 8;
void launch_experts_f32(const ExpertProduct& product, const float* x, cudaStream_t stream);
// With f16 operands, on the tensor cores; tiles are of kFewExpertRows or kManyExpertRows; cols is a
// multiple of 8.
inline constexpr std::uint32_t kFewExpertRows = 16;
inline constexpr std::uint32_t kManyExpertRows = 64;
void launch_experts_half(const ExpertProduct& product, const HalfRows& x, cudaStream_t stream);

// The experts of one row, whose slots are its choices in their order. The weights count as f16, all
// else as f32; gate and up are of one type, and ffn and dim multiples of 8.
struct RowExperts {
  DeviceMatrix gate, up, down;             // expert after expert
  const std::uint32_t* experts = nullptr;  // [used]
  const float* weights = nullptr;          // [used]
  std::uint32_t used = 0;
  std::uint32_t ffn = 0;  // outputs of gate and of up, each expert's
};
// hidden[used, ffn] = activation(gate x) * (up x).
void launch_row_experts_hidden(const RowExperts& experts, Activation activation, const float* x,
                               float* hidden, cudaStream_t stream);
// What launch_combine_experts makes of the products down hidden: branch[dim].
void launch_row_experts_down(const RowExperts& experts, const float* hidden, const float* share,
                             std::uint32_t dim, float* branch, cudaStream_t stream);

// branch[rows, dim] = the experts' outputs [slots, dim] by their weights, in the order of their
// rank; and, where there is a `share`, sigmoid(share[row]) times what branch holds.
void launch_combine_experts(const MixtureSpec& spec, const ExpertRows& experts,
                            const float* outputs, const float* share, std::uint32_t rows,
                            std::uint32_t dim, float* branch, cudaStream_t stream);

}  // namespace edgerunner::cuda
