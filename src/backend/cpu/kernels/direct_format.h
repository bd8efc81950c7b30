#pragma once

// How the formats of quantised weights are read for the products of direct_product.h. Each has
//   S, kForm; kOffset: what the codes are above the integers of the weights;
//   kSteps, kBytes: the blocks that it reads at a time, and their size;
//   read(rows, skipped, use): calls use(codes, scales) for the blocks of those from the one after
//   `skipped` on, in their order.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/codes.h"
#include "backend/cpu/kernels/unpack_blocks32.h"

namespace edgerunner::cpu {
namespace {

// Weight rows one after the other, of which six registers hold where they all are.
struct EvenRows {
  const std::uint8_t* every_fourth[4];
  std::size_t stride;
  std::size_t three_strides;

  EvenRows(const std::uint8_t* first, std::size_t row_bytes)
      : every_fourth{first, first + 4 * row_bytes, first + 8 * row_bytes, first + 12 * row_bytes},
        stride(row_bytes),
        three_strides(3 * row_bytes) {}

  [[gnu::always_inline]] const std::uint8_t* operator[](int row) const {
    const std::uint8_t* p = every_fourth[row / 4];
    return row % 4 == 0   ? p
           : row % 4 == 1 ? p + stride
           : row % 4 == 2 ? p + 2 * stride
                          : p + three_strides;
  }
  void advance(std::ptrdiff_t bytes) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) every_fourth[i] += bytes;
  }
};

// A format whose blocks hold 32 weights and a scale, four at a time.
template <class Vectors, CodeForm kFormOf, template <class> class Codes>
struct DirectBlocks32 {
  using S = Vectors;
  static constexpr CodeForm kForm = kFormOf;
  static constexpr int kOffset = Codes<S>::kOffset;
  static constexpr std::uint32_t kSteps = 4;
  static constexpr std::size_t kBytes = kSteps * std::size_t{Codes<S>::kBytes};

  template <class Use>
  [[gnu::always_inline]] static void read(EvenRows rows, std::uint32_t skipped, const Use& use) {
    typename S::F scales[2][kSteps];
    read_scales<S, Codes<S>>(rows, 0, scales);
    rows.advance(static_cast<std::ptrdiff_t>(skipped) * Codes<S>::kBytes);
#pragma GCC unroll 1
    for (std::uint32_t i = skipped; i < kSteps; ++i) {
      typename S::I codes[8];
      Codes<S>::read(rows, 0, codes);
      BlockScales<S> scale;
      scale.first = scales[0][i];
      if constexpr (kForm == CodeForm::minimum) scale.second = scales[1][i];
      use(codes, scale);
      rows.advance(Codes<S>::kBytes);
    }
  }
};

// A format whose blocks hold 256.
template <class Vectors, CodeForm kFormOf, template <class> class Block>
struct DirectK {
  using S = Vectors;
  static constexpr CodeForm kForm = kFormOf;
  static constexpr int kOffset = Block<S>::kOffset;
  static constexpr std::uint32_t kSteps = 8;
  static constexpr std::size_t kBytes = Block<S>::kBytes;

  template <class Use>
  [[gnu::always_inline]] static void read(const EvenRows& rows, std::uint32_t, const Use& use) {
    Block<S>::read(rows, 0, use);
  }
};

}  // namespace
}  // namespace edgerunner::cpu
