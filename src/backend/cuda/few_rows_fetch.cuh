#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/few_rows_units.cuh"
#include "backend/cuda/matmul_rows.h"
#include "backend/cuda/mma.cuh"
#include "backend/cuda/segment.h"

namespace edgerunner::cuda {

// Brings units into shared memory, one after another from `begin` on: codes at the stage's
// beginning, headers at kHeaders. A thread copies the same piece of rows at even distances, of each
// plane, and a row's header: what changes from unit to unit is the same for all threads.
template <ElementType T>
class UnitFetch {
 public:
  using Unit = UnitOf<T>;
  static constexpr int kHeaders = kTile * Unit::kCodeBytes;
  static constexpr int kBytes = kHeaders + kTile * Unit::kHeaderBytes;

  __device__ UnitFetch(const RowsArguments& m, std::uint32_t begin)
      : m_(m), tile_(begin / m.cut.units), k_(begin - tile_ * m.cut.units) {
#pragma unroll
    for (int p = 0; p < Unit::kPlanes; ++p) {
      place_[p] = Unit::place(row_of(p), p * Unit::pieces(0) + piece_of(p));
    }
  }

  // Asks for the next unit; returns its first column.
  __device__ std::uint32_t next(std::uint32_t stage) {
    if (k_ == m_.cut.units) {
      k_ = 0;
      ++tile_;
    }
    constexpr Layout kLayout = layout(T);
    const std::uint32_t k = k_++ * kCols;
    const std::uint32_t segment = k / kLayout.segment_elements;
    const int at = static_cast<int>(k - segment * kLayout.segment_elements);
    const std::uint32_t rest = m_.w.cols - segment * kLayout.segment_elements;
    const int count = static_cast<int>(
        rest < kLayout.segment_elements ? rest : kLayout.segment_elements);  // of the segment
    const int n = count / static_cast<int>(kLayout.block_length);
    const int rows = static_cast<int>(m_.outputs - tile_ * kTile);  // of the tile, and more
    const std::uint8_t* const data =
        m_.w.data + static_cast<std::size_t>(m_.first + tile_ * kTile) * m_.w.row_bytes +
        segment * segment_bytes(kLayout);
#pragma unroll
    for (int p = 0; p < Unit::kPlanes; ++p) {
      const int pieces = Unit::pieces(p);
      const int apart = kRowsThreads / pieces;
      const std::uint8_t* const from = data + Unit::code_offset(p, n, at) + piece_of(p) * 16 +
                                       static_cast<std::size_t>(row_of(p)) * m_.w.row_bytes;
      // Blocks of 32 may end inside the unit; a piece never lies across such an end.
      const bool inside = kLayout.block_length > 32 || at + piece_of(p) * (kCols / pieces) < count;
#pragma unroll
      for (int i = 0; i < kTile / apart; ++i) {
        copy_16_of_256(stage + place_[p] + i * apart * pieces * 16,
                       from + static_cast<std::size_t>(i * apart) * m_.w.row_bytes,
                       inside && row_of(p) + i * apart < rows);
      }
    }
    const int row = static_cast<int>(threadIdx.x);
    if (row < kTile) {
      Unit::header(stage + kHeaders + row * Unit::kHeaderBytes,
                   data + static_cast<std::size_t>(row) * m_.w.row_bytes, n, at, row < rows);
    }
    return k;
  }

 private:
  __device__ static int row_of(int plane) {
    return static_cast<int>(threadIdx.x) / Unit::pieces(plane);
  }
  __device__ static int piece_of(int plane) {
    return static_cast<int>(threadIdx.x) % Unit::pieces(plane);
  }

  const RowsArguments& m_;
  std::uint32_t tile_;
  std::uint32_t k_;  // in units
  std::uint32_t place_[Unit::kPlanes];
};

}  // namespace edgerunner::cuda
