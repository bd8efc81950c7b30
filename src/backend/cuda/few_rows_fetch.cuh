#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/few_rows_units.cuh"
#include "backend/cuda/matmul_rows.h"
#include "backend/cuda/mma.cuh"

namespace edgerunner::cuda {

// Brings units into shared memory by cp.async, one after another from `begin` on. A thread copies
// the same piece of rows at even distances, of each plane, and a row's header: what changes from
// unit to unit is the same for all threads.
template <ElementType T>
class UnitFetch {
 public:
  using Unit = UnitOf<T>;

  __device__ UnitFetch(const RowsArguments& m, std::uint32_t begin)
      : m_(m), walk_(m.cut, m.w.cols, begin) {}

  // Asks for the next unit; returns its first column.
  __device__ std::uint32_t next(std::uint32_t stage) {
    const int at = walk_.at();
    const int count = walk_.elements();
    const int n = walk_.blocks();
    const int present = walk_.present();
    const std::uint32_t column = walk_.column();
    const int rows = static_cast<int>(m_.outputs - walk_.tile() * kTile);  // of the tile, and more
    const std::uint8_t* const data =
        m_.w.data + static_cast<std::size_t>(m_.first + walk_.tile() * kTile) * m_.w.row_bytes +
        walk_.segment();
    walk_.advance();
#pragma unroll
    for (int p = 0; p < Unit::kPlanes; ++p) {
      constexpr int kPieces[2] = {Unit::pieces(0), Unit::pieces(Unit::kPlanes - 1)};
      const int pieces = kPieces[p];
      const int row = static_cast<int>(threadIdx.x) / pieces;
      const int piece = static_cast<int>(threadIdx.x) % pieces;
      const int apart = kRowsThreads / pieces;
      const std::uint8_t* const from = data + Unit::code_offset(p, n, at) + piece * 16 +
                                       static_cast<std::size_t>(row) * m_.w.row_bytes;
      const std::uint32_t to = stage + UnitPlaces<T>::plane(p) +
                               (p == 0 ? swizzled_place<kPieces[0]>(row, piece)
                                       : swizzled_place<kPieces[1]>(row, piece));
      // Nothing is read past a row's last block.
      const bool inside = at + piece * (kCols / pieces) < count;
#pragma unroll
      for (int i = 0; i < kTile / apart; ++i) {
        // `apart` is a multiple of 8: the places' permutation repeats.
        copy_16_of_256(to + i * apart * pieces * 16,
                       from + static_cast<std::size_t>(i * apart) * m_.w.row_bytes,
                       inside && row + i * apart < rows);
      }
    }
    const int row = static_cast<int>(threadIdx.x);
    if (row < kTile) {
      Unit::header(stage + UnitPlaces<T>::kHeaders + row * Unit::kHeaderBytes,
                   data + static_cast<std::size_t>(row) * m_.w.row_bytes, n, at,
                   row < rows ? present : 0);
    }
    return column;
  }

 private:
  const RowsArguments& m_;
  UnitWalk<T> walk_;
};

}  // namespace edgerunner::cuda
