#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backend/cuda/prefill_ops.h"
#include "backend/cuda/segment.h"

namespace edgerunner::cuda {

// Products of up to kMostFewRows rows of activations with quantised weights as they stand:
// dequantised in registers into the tensor cores' operands, f16 with f32 sums, once for each
// kRowTile rows. The work of a matrix is a line of units, kUnitCols columns of kTileOutputs outputs
// each, cut into as many equal pieces as there are multiprocessors. A piece may begin and end
// inside a tile, so a tile's sum comes in parts; whoever needs the result adds them. The cut
// depends on the matrix and the device alone, and so do the bits of a row.
inline constexpr std::uint32_t kMostFewRows = 640;  // a chunk of 512 and what decodes beside it
inline constexpr std::uint32_t kRowTile = 128;
inline constexpr std::uint32_t kMostBlocks = 160;
inline constexpr std::uint32_t kMostFewRowsCols =
    32768;  // of a matrix: a row in a block's registers
inline constexpr std::uint32_t kTileOutputs = 256;
inline constexpr std::uint32_t kUnitCols = 128;
// Outputs of one launch: larger matrices go through in pieces, so that the parts stay small.
inline constexpr std::uint32_t kMostOutputs = 32768;

// Up to three matrices of one type and width whose outputs follow each other, as the matrices do in
// memory without a gap.
struct StackedMatrices {
  DeviceMatrix part[3];
  std::uint32_t count = 0;
  std::uint32_t outputs = 0;  // of all
  std::uint32_t first = 0;    // output that the launch begins at, a multiple of kTileOutputs
};

// How the units of a launch are cut. Block b computes units [begin(b), begin(b + 1)).
struct UnitCut {
  std::uint32_t units = 0;  // of a tile
  std::uint32_t total = 0;
  std::uint32_t blocks = 0;  // every one has a unit

  constexpr UnitCut() = default;
  constexpr UnitCut(std::uint32_t outputs, std::uint32_t cols, std::uint32_t device_blocks)
      : units((cols + kUnitCols - 1) / kUnitCols),
        total((outputs + kTileOutputs - 1) / kTileOutputs * units),
        blocks(device_blocks < total ? device_blocks : total) {}
  constexpr std::uint32_t begin(std::uint32_t block) const { return block * total / blocks; }
  // The block that computes a unit.
  constexpr std::uint32_t block_of(std::uint32_t unit) const {
    return ((unit + 1) * blocks - 1) / total;
  }
  // Most blocks that share a tile.
  constexpr std::uint32_t most_sharing() const { return (units * blocks + total - 1) / total + 1; }
  // Blocks and tiles both only grow along the line, so block + tile names a part uniquely.
  constexpr std::uint32_t parts() const { return blocks + total / units; }
};

// A product as it is left: parts [cut.parts()][stride][kTileOutputs], and scale [rows] to multiply
// with.
struct PartialProduct {
  const float* parts = nullptr;
  const float* scale = nullptr;
  std::uint32_t stride = 0;  // rows that a part has room for
  UnitCut cut;
};

// Multiprocessors that take part; and the most rows for which these products are the fastest, on
// the device there is.
std::uint32_t few_rows_blocks(int multiprocessors);
std::uint32_t most_few_rows();
// Floats that the parts of a launch of so many outputs take at most.
std::uint64_t partial_floats(std::uint32_t rows, std::uint32_t outputs);

bool few_rows_supports(ElementType type);

// parts = x W^T for x[rows, cols] and the outputs [w.first, w.first + outputs) of w.
// `device_blocks` is few_rows_blocks(); rows is most_few_rows() at most.
PartialProduct launch_matmul_rows(const StackedMatrices& w, const HalfRows& x, std::uint32_t rows,
                                  std::uint32_t outputs, std::uint32_t device_blocks, float* parts,
                                  cudaStream_t stream);

// y[row, i] = product + bias[i]. The bias of each of the stacked matrices, or null.
struct StackedBias {
  const float* part[3] = {nullptr, nullptr, nullptr};
  std::uint32_t end[3] = {0, 0, 0};  // outputs up to and with each
};
void launch_collect(const PartialProduct& product, const StackedBias& bias, std::uint32_t rows,
                    std::uint32_t outputs, float* y, std::uint32_t y_stride, cudaStream_t stream);

// Queries, keys and values from their product, its outputs [q | k | v], and each one's bias:
// launch_collect and launch_rotate_and_cache in one, to the same bits. Of `qkv` only the queries
// are written.
void launch_rotate_parts(const PartialProduct& product, const StackedBias& bias,
                         const AttentionShape& shape, const RotateWeights& weights,
                         const DeviceBatch& batch, float* qkv, const DeviceCache& cache,
                         cudaStream_t stream);

// x += product + bias; then, where `weight` is given, to = norm(x) (launch_norm_to_half), and
// `normed` the same in f32 where it is not null.
void launch_add_and_norm(const PartialProduct& product, const float* bias, std::uint32_t rows,
                         std::uint32_t dim, float* x, const float* weight, float epsilon,
                         const HalfRows& to, float* normed, cudaStream_t stream);

// to = activation(gate + bias) * (up + bias) for a product whose outputs are all of gate's, then
// up's.
void launch_gated_parts(Activation activation, const PartialProduct& product,
                        const float* gate_bias, const float* up_bias, std::uint32_t rows,
                        std::uint32_t ffn, const HalfRows& to, cudaStream_t stream);

}  // namespace edgerunner::cuda
