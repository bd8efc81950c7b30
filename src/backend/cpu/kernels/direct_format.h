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

// What a block of 32 weights has beside its codes, taken from all rows and later made vectors. In
// between it stands in memory, put there through general registers, which have nothing else to do:
// a vector's loads and shuffles would be as many as those of the codes.
template <class S, class Codes>
struct BesideCodes {
  using Word = std::conditional_t<Codes::kScale == BlockScale::half, std::uint16_t,
                                  std::conditional_t<Codes::kScale == BlockScale::half_and_minimum,
                                                     std::uint32_t, std::uint8_t>>;
  alignas(64) Word words[S::kLanes];
  alignas(64) std::uint32_t fifth[Codes::kFifthBitsAt == 0 ? 1 : S::kLanes];

  template <class Rows>
  [[gnu::always_inline]] void take(const Rows& rows, std::size_t block) {
    S::copy_words(rows, block, words);
    if constexpr (Codes::kFifthBitsAt != 0) {
      S::copy_words(rows, block + Codes::kFifthBitsAt, fifth);
    }
  }
  [[gnu::always_inline]] typename S::I fifth_bits() const {
    if constexpr (Codes::kFifthBitsAt == 0) return S::zero_integers();
    return S::load_integers(reinterpret_cast<const std::uint8_t*>(fifth));
  }
  [[gnu::always_inline]] BlockScales<S> scales() const {
    BlockScales<S> result;
    if constexpr (Codes::kScale == BlockScale::half) {
      result.first = S::widen_halves(words);
    } else if constexpr (Codes::kScale == BlockScale::half_and_minimum) {
      const typename S::I both = S::load_integers(reinterpret_cast<const std::uint8_t*>(words));
      result.first = S::low_half(both);
      result.second = S::low_half(S::shr32(both, 16));
    } else {
      result.first = exponent_scale<S>(S::widen_bytes(words));
    }
    return result;
  }
};

// The codes of a block of 32 weights, read in eight parts.
template <class S, class Codes>
struct CodesInParts {
  using I = typename S::I;
  std::conditional_t<Codes::kNibbles, typename S::Columns4InParts, typename S::Columns8InParts>
      columns;
  I codes[8];

  template <class Rows>
  [[gnu::always_inline]] void read(int part, const Rows& rows, I fifth_bits) {
    columns.read(part, rows, Codes::kCodesAt);
    const int c = part - 4;
    if (c < 0) return;
    if constexpr (Codes::kNibbles) {
      const I low = S::set8(0x0F);
      codes[c] = S::bit_and(columns.out[c], low);
      codes[4 + c] = S::bit_and(S::shr16(columns.out[c], 4), low);
    } else {
      codes[c] = columns.low(c);
      codes[4 + c] = columns.high(c);
    }
    codes[c] = Codes::code(codes[c], fifth_bits, c);
    codes[4 + c] = Codes::code(codes[4 + c], fifth_bits, 4 + c);
  }
};

// A format whose blocks hold 32 weights and a scale. While one is multiplied the next is read.
template <class Vectors, CodeForm kFormOf, template <class> class CodesOf>
struct DirectBlocks32 {
  using S = Vectors;
  using Codes = CodesOf<S>;
  static constexpr CodeForm kForm = kFormOf;
  static constexpr int kOffset = Codes::kOffset;
  static constexpr std::uint32_t kSteps = 1;
  static constexpr std::size_t kBytes = Codes::kBytes;

  template <class Use>
  [[gnu::always_inline]] static void read(EvenRows rows, std::uint32_t steps, const Use& use) {
    BesideCodes<S, Codes> beside[kKept];
#pragma GCC unroll 1
    for (std::uint32_t i = 0; i < kAhead && i < steps; ++i) beside[i].take(rows, i * kBytes);
    CodesInParts<S, Codes> next;
#pragma GCC unroll 8
    for (int part = 0; part < 8; ++part) next.read(part, rows, beside[0].fifth_bits());
#pragma GCC unroll 1
    for (std::uint32_t i = 0; i < steps; ++i) {
      if (i + kAhead < steps) beside[(i + kAhead) % kKept].take(rows, kAhead * kBytes);
      typename S::I codes[8];
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) codes[k] = next.codes[k];
      const std::uint32_t following = i + 1 < steps ? i + 1 : i;
      rows.advance(static_cast<std::ptrdiff_t>((following - i) * kBytes));
      const typename S::I fifth_bits = beside[following % kKept].fifth_bits();
      use(
          codes, beside[i % kKept].scales(), [&](int part) __attribute__((always_inline)) {
            next.read(part, rows, fifth_bits);
          });
    }
  }

 private:
  // Taken so many blocks early, words have left the queue of stores when they are wanted, for a
  // load can't take them from there together.
  static constexpr std::uint32_t kAhead = 3;
  static constexpr std::uint32_t kKept = 4;
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
      Block<S>::read(
          rows, 0,
          [&](const typename S::I* codes, const BlockScales<S>& scales)
              __attribute__((always_inline)) { use(codes, scales, [](int) {}); });
      rows.advance(kBytes);
    }
  }
};

}  // namespace
}  // namespace edgerunner::cpu
