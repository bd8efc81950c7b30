#pragma once

// How the formats of quantised weights are read for the products of direct_product.h. Each has
//   S, kForm; kOffset: what the codes are above the integers of the weights;
//   kSteps, kBytes: the 32-blocks of which its rows are multiples, and their size;
//   read(rows, steps, use): calls use(codes, scales) for the 32-blocks of the rows, in their order.

#include <cstddef>
#include <cstdint>
#include <type_traits>

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
    for (int i = 0; i < 4; ++i) {
      every_fourth[i] += bytes;
      asm("" : "+r"(every_fourth[i]));  // or else g++ keeps the four in one vector
    }
  }
};

// What blocks of 32 weights have beside their codes, taken from a block of all rows and later made
// scales. In between it stands in memory, put there through general registers, which have nothing
// else to do: a vector's loads and shuffles would be as many as those of the codes.
template <class S, BlockScale kScale>
struct StagedScales {
  using Word = std::conditional_t<
      kScale == BlockScale::half, std::uint16_t,
      std::conditional_t<kScale == BlockScale::half_and_minimum, std::uint32_t, std::uint8_t>>;
  alignas(64) Word words[S::kLanes];

  template <class Rows>
  [[gnu::always_inline]] void take(const Rows& rows, std::size_t block) {
    S::copy_words(rows, block, words);
  }
  [[gnu::always_inline]] BlockScales<S> scales() const {
    BlockScales<S> result;
    if constexpr (kScale == BlockScale::half) {
      result.first = S::widen_halves(words);
    } else if constexpr (kScale == BlockScale::half_and_minimum) {
      const typename S::I both = S::load_integers(reinterpret_cast<const std::uint8_t*>(words));
      result.first = S::low_half(both);
      result.second = S::low_half(S::shr32(both, 16));
    } else {
      result.first = exponent_scale<S>(S::widen_bytes(words));
    }
    return result;
  }
};

// A format whose blocks hold 32 weights and a scale.
template <class Vectors, CodeForm kFormOf, template <class> class Codes>
struct DirectBlocks32 {
  using S = Vectors;
  static constexpr CodeForm kForm = kFormOf;
  static constexpr int kOffset = Codes<S>::kOffset;
  static constexpr std::uint32_t kSteps = 1;
  static constexpr std::size_t kBytes = Codes<S>::kBytes;

  template <class Use>
  [[gnu::always_inline]] static void read(EvenRows rows, std::uint32_t steps, const Use& use) {
    StagedScales<S, Codes<S>::kScale> staged[kStaged];
#pragma GCC unroll 1
    for (std::uint32_t i = 0; i < kAhead && i < steps; ++i) staged[i].take(rows, i * kBytes);
#pragma GCC unroll 1
    for (std::uint32_t i = 0; i < steps; ++i) {
      if (i + kAhead < steps) staged[(i + kAhead) % kStaged].take(rows, kAhead * kBytes);
      typename S::I codes[8];
      Codes<S>::read(rows, 0, codes);
      use(codes, staged[i % kStaged].scales());
      rows.advance(kBytes);
    }
  }

 private:
  // Scales are taken so many blocks early that they have left the queue of stores when they are
  // wanted, for a load can't take them from there together.
  static constexpr std::uint32_t kAhead = 2;
  static constexpr std::uint32_t kStaged = 4;
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
  [[gnu::always_inline]] static void read(EvenRows rows, std::uint32_t steps, const Use& use) {
    for (std::uint32_t first = 0; first < steps; first += kSteps) {
      Block<S>::read(rows, 0, use);
      rows.advance(kBytes);
    }
  }
};

}  // namespace
}  // namespace edgerunner::cpu
