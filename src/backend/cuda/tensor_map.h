#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

// Matrices in device memory as Hopper's tensor memory accelerator knows them: it brings a box of
// one into shared memory by a single instruction (ptx.cuh, tensor_copy). Source: CUDA driver API,
// "Tensor Map Object Management".

namespace edgerunner::cuda {

// Rows of bytes that lie row_bytes apart (a multiple of 16).
struct TensorRows {
  const void* data = nullptr;  // aligned to 16
  std::uint32_t bytes = 0;     // of a row that may be read; a box shows zeros past them
  std::uint32_t rows = 0;      // a box shows zeros past them
  std::size_t row_bytes = 0;
};

// Boxes of box_rows (at most 256) rows of box_bytes: 32, 64 or 128, whose pieces of 16 bytes are
// permuted as swizzled_place() says. Throws Error(device) where the driver knows no such maps.
CUtensorMap tensor_map(const TensorRows& rows, std::uint32_t box_bytes, std::uint32_t box_rows);

// Where a piece of 16 bytes of a row stands in a box of kPieces (2, 4 or 8) pieces a row: eight
// neighbouring rows have it in different banks.
template <int kPieces>
constexpr std::uint32_t swizzled_place(std::uint32_t row, std::uint32_t piece) {
  static_assert(kPieces == 2 || kPieces == 4 || kPieces == 8);
  const std::uint32_t by = row / (8 / kPieces) % kPieces;
  return row * (kPieces * 16) + (piece ^ by) * 16;
}

}  // namespace edgerunner::cuda
