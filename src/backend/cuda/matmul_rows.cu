#include "backend/cuda/matmul_rows.h"

#include <algorithm>

#include "backend/cuda/chain.cuh"
#include "backend/cuda/prefill_ops.h"

namespace edgerunner::cuda {
namespace {

// Rows that a part has room for: what the kernels are made for, or whole tiles of them.
std::uint32_t room_of(std::uint32_t rows) {
  if (rows <= 64) return rows <= 16 ? 16 : (rows <= 32 ? 32 : 64);
  return (rows + kRowTile - 1) / kRowTile * kRowTile;
}

}  // namespace

bool few_rows_supports(ElementType type) {
  return type == ElementType::q8_0 || type == ElementType::q4_k || type == ElementType::q6_k ||
         type == ElementType::q4_0 || type == ElementType::q4_1;
}

std::uint32_t few_rows_blocks(int multiprocessors) {
  return std::min(static_cast<std::uint32_t>(multiprocessors), kMostBlocks);
}

std::uint32_t most_few_rows() {
  return wgmma_supports(device_major()) ? kMostFewRows : kLittleRows;
}

std::uint64_t partial_floats(std::uint32_t rows, std::uint32_t outputs) {
  const std::uint64_t tiles = (outputs + kTileOutputs - 1) / kTileOutputs;
  return (kMostBlocks + tiles) * room_of(rows) * kTileOutputs;
}

PartialProduct launch_matmul_rows(const StackedMatrices& w, const HalfRows& x, std::uint32_t rows,
                                  std::uint32_t outputs, std::uint32_t device_blocks, float* parts,
                                  cudaStream_t stream) {
  DeviceMatrix matrix = w.part[0];
  for (std::uint32_t i = 1; i < w.count; ++i) matrix.rows += w.part[i].rows;
  const UnitCut cut(outputs, matrix.cols, device_blocks);
  const RowsArguments arguments{matrix, w.first,       x,    rows, room_of(rows), outputs,
                                cut,    device_blocks, parts};
  if (wgmma_supports(device_major())) {
    launch_matmul_rows_wgmma(arguments, stream);
  } else {
    launch_matmul_rows_mma(arguments, stream);
  }
  return {parts, x.scale, room_of(rows), cut};
}

}  // namespace edgerunner::cuda
