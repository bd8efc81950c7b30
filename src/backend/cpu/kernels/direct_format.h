#pragma once

// How the formats of quantised weights are read for the products of direct_product.h. Each has
//   S, kForm; kOffset: what the codes are above the integers of the weights;
//   kSteps, kBytes: the 32-blocks of which its rows are multiples, and their size;
//   read(rows, steps, use): calls use(code, scales, meanwhile) for the 32-blocks of the rows, in
//   their order. code(k) is vector k of the codes; meanwhile(k) is work to be done after the
//   products with it, on other ports.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backend/cpu/kernels/codes.h"
#include "backend/cpu/kernels/unpack_blocks32.h"
#include "backend/cpu/kernels/unpack_k.h"

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
  using I = typename S::I;
  static constexpr bool kHasFifthBits = Codes::kFifthBitsAt != 0;
  template <bool kIf, class Then, class Else>
  using Choose = std::conditional_t<kIf, Then, Else>;
  // The begin of a block: its scale and minimum, and fifth bits where it has some.
  using Word =
      Choose<kHasFifthBits, std::uint64_t,
             Choose<Codes::kScale == BlockScale::half_and_minimum, std::uint32_t,
                    Choose<Codes::kScale == BlockScale::half, std::uint16_t, std::uint8_t>>>;
  // One more where the others are read as 32 bits from within each.
  alignas(64) Word words[S::kLanes + (kHasFifthBits ? 1 : 0)];

  template <class Rows>
  [[gnu::always_inline]] void take(const Rows& rows, std::size_t block) {
    S::copy_words(rows, block, words);
  }
  [[gnu::always_inline]] I fifth_bits() const {
    if constexpr (!kHasFifthBits) return S::zero_integers();
    return S::every_other(bytes() + Codes::kFifthBitsAt);
  }
  [[gnu::always_inline]] BlockScales<S> scales() const {
    BlockScales<S> result;
    if constexpr (Codes::kScale == BlockScale::exponent) {
      result.first = exponent_scale<S>(S::widen_bytes(words));
    } else if constexpr (sizeof(Word) == sizeof(std::uint16_t)) {
      result.first = S::widen_halves(words);
    } else {
      I both;
      if constexpr (kHasFifthBits) {
        both = S::every_other(bytes());
      } else {
        both = S::load_integers(bytes());
      }
      result.first = S::low_half(both);
      if constexpr (Codes::kScale == BlockScale::half_and_minimum) {
        result.second = S::low_half(S::shr32(both, 16));
      }
    }
    return result;
  }

 private:
  const std::uint8_t* bytes() const { return reinterpret_cast<const std::uint8_t*>(words); }
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
    codes[c] = complete(codes[c], fifth_bits, c);
    codes[4 + c] = complete(codes[4 + c], fifth_bits, 4 + c);
  }

 private:
  [[gnu::always_inline]] static I complete(I read, I fifth_bits, int k) {
    if constexpr (Codes::kFifthBitsAt == 0) return Codes::code(read);
    return S::bit_or(read, S::sixteen_by_table(S::repeat_byte(fifth_bits, k / 2), k % 2));
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
      const auto code = [&](int k) __attribute__((always_inline)) { return codes[k]; };
      const auto meanwhile = [&](int k) __attribute__((always_inline)) {
        next.read(k, rows, fifth_bits);
      };
      use(code, beside[i % kKept].scales(), meanwhile);
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
    const auto use_codes = [&](const typename S::I* codes, const BlockScales<S>& scales)
        __attribute__((always_inline)) {
      const auto code = [&](int k) __attribute__((always_inline)) { return codes[k]; };
      use(code, scales, [](int) {});
    };
    for (std::uint32_t first = 0; first < steps; first += kSteps) {
      Block<S>::read(rows, 0, use_codes);
      rows.advance(kBytes);
    }
  }
};

// Q4_K: 64 weights at a time, whose codes are the halves of the same bytes. They are taken apart
// just before they are multiplied, and the next ones read while the second half is.
template <class Vectors>
struct DirectQ4K {
  using S = Vectors;
  using I = typename S::I;
  static constexpr CodeForm kForm = CodeForm::minimum;
  static constexpr int kOffset = 0;
  static constexpr std::uint32_t kSteps = 8;
  static constexpr std::size_t kBytes = Q4KBlock<S>::kBytes;

  template <class Use>
  [[gnu::always_inline]] static void read(EvenRows rows, std::uint32_t steps, const Use& use) {
    ScalesAndMinima<S> scales(rows, 0);
    rows.advance(kHead);
    I bytes[8];
    S::load_columns8(rows, 0, bytes);
    const auto low = [&](int k) __attribute__((always_inline)) {
      return S::bit_and(bytes[k], S::set8(0x0F));
    };
    const auto high = [&](int k) __attribute__((always_inline)) {
      return S::bit_and(S::shr16(bytes[k], 4), S::set8(0x0F));
    };
#pragma GCC unroll 1
    for (std::uint32_t i = 0; i < steps; i += 2) {
      const int j = static_cast<int>(i % kSteps);
      use(low, scales.of(j), [](int) {});
      const bool last = i + 2 >= steps;
      const bool ends_block = (i + 2) % kSteps == 0;
      rows.advance(last ? 0 : ends_block ? 32 + kHead : 32);
      typename S::Columns8InParts next;
      const auto meanwhile = [&](int k) __attribute__((always_inline)) {
        next.read(k, rows, 0);
        if (k < 4) return;
        bytes[k - 4] = next.low(k - 4);
        bytes[k] = next.high(k - 4);
      };
      use(high, scales.of(j + 1), meanwhile);
      if (ends_block && !last) {
        EvenRows heads = rows;
        heads.advance(-kHead);
        scales = ScalesAndMinima<S>(heads, 0);
      }
    }
  }

 private:
  static constexpr std::ptrdiff_t kHead = 16;
};

}  // namespace
}  // namespace edgerunner::cpu
