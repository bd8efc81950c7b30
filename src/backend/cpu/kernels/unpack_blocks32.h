#pragma once

// Unpacks the formats whose blocks hold 32 weights and a scale: four blocks of S::kLanes
// rows at a time.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/panel_kernel.h"
#include "backend/cpu/kernels/unpack_portable.h"

namespace edgerunner::cpu {
namespace {

inline constexpr std::int8_t kIq4CodeValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                   1,    13,   25,  38,  53,  69,  89,  113};
inline constexpr std::int8_t kMxfp4CodeValues[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                                     0, -1, -2, -3, -4, -6, -8, -12};

// Low and high nibbles of 16 bytes a row: the first and the second half of a block.
template <class S, class Rows>
[[gnu::always_inline]] inline void split_nibbles(const Rows& rows, std::size_t offset,
                                                 typename S::I codes[8]) {
  typename S::I columns[4];
  S::load_columns4(rows, offset, columns);
  const auto low = S::set8(0x0F);
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    codes[k] = S::bit_and(columns[k], low);
    codes[4 + k] = S::bit_and(S::shr16(columns[k], 4), low);
  }
}

template <class S, const std::int8_t (&kValues)[16], class Rows>
[[gnu::always_inline]] inline void read_table_codes(const Rows& rows, std::size_t offset,
                                                    typename S::I codes[8]) {
  const auto table = S::add8(S::table(kValues), S::set8(kCodeOffset));
  split_nibbles<S>(rows, offset, codes);
#pragma GCC unroll 8
  for (int k = 0; k < 8; ++k) codes[k] = S::lookup(table, codes[k]);
}

// Beside the codes of a 32-block, with a weight row a lane.
template <class S>
struct BlockScales {
  typename S::F first;
  typename S::F second;         // the second half's in half_scales; the minimum
  typename S::I minimum_codes;  // half_minima: two 16-bit integers
};

// The panels' codes are above the integers of signed weights by kCodeOffset, in whatever form a
// format reads them.
template <class S, CodeForm kForm, int kOffset>
[[gnu::always_inline]] inline typename S::I panel_codes(typename S::I codes) {
  constexpr bool kSigned = kForm == CodeForm::signed_codes || kForm == CodeForm::half_scales;
  if constexpr (!kSigned || kOffset == kCodeOffset) return codes;
  return S::add8(codes, S::set8(kCodeOffset - kOffset));
}

// What a block has beside its codes.
enum class BlockScale : std::uint8_t { half, half_and_minimum, exponent };

// A block has its codes as bytes or as nibbles at kCodesAt and, where kFifthBitsAt isn't 0, the
// fifth bits of its weights there. code() makes of bytes or nibbles what products take.
template <class S, int kAt, int kFifthAt = 0>
struct NibbleCodes {
  using I = typename S::I;
  static constexpr bool kNibbles = true;
  static constexpr int kCodesAt = kAt;
  static constexpr int kFifthBitsAt = kFifthAt;
  [[gnu::always_inline]] static I code(I read) { return read; }
};
template <class S, const std::int8_t (&kValues)[16], int kAt>
struct TableCodes : NibbleCodes<S, kAt> {
  using I = typename S::I;
  [[gnu::always_inline]] static I code(I read) {
    return S::lookup(S::add8(S::table(kValues), S::set8(kCodeOffset)), read);
  }
};

template <class S>
struct Q4_0Codes : NibbleCodes<S, 2> {
  static constexpr int kBytes = 18;
  static constexpr int kOffset = 8;
  static constexpr BlockScale kScale = BlockScale::half;
};

template <class S>
struct Iq4NlCodes : TableCodes<S, kIq4CodeValues, 2> {
  static constexpr int kBytes = 18;
  static constexpr int kOffset = kCodeOffset;
  static constexpr BlockScale kScale = BlockScale::half;
};

template <class S>
struct Q4_1Codes : NibbleCodes<S, 4> {
  static constexpr int kBytes = 20;
  static constexpr int kOffset = 0;
  static constexpr BlockScale kScale = BlockScale::half_and_minimum;
};

template <class S>
struct Q5_0Codes : NibbleCodes<S, 6, 2> {
  static constexpr int kBytes = 22;
  static constexpr int kOffset = 16;
  static constexpr BlockScale kScale = BlockScale::half;
};

template <class S>
struct Q5_1Codes : NibbleCodes<S, 8, 4> {
  static constexpr int kBytes = 24;
  static constexpr int kOffset = 0;
  static constexpr BlockScale kScale = BlockScale::half_and_minimum;
};

template <class S>
struct Q8_0Codes {
  using I = typename S::I;
  static constexpr bool kNibbles = false;
  static constexpr int kCodesAt = 2;
  static constexpr int kFifthBitsAt = 0;
  static constexpr int kBytes = 34;
  static constexpr int kOffset = kCodeOffset;
  static constexpr BlockScale kScale = BlockScale::half;
  [[gnu::always_inline]] static I code(I read) { return S::bit_xor(read, S::set8(kCodeOffset)); }
};

template <class S>
struct Mxfp4Codes : TableCodes<S, kMxfp4CodeValues, 1> {
  static constexpr int kBytes = 17;
  static constexpr int kOffset = kCodeOffset;
  static constexpr BlockScale kScale = BlockScale::exponent;
};

template <class S, class Codes, class Rows>
[[gnu::always_inline]] inline void read_block_codes(const Rows& rows, std::size_t block,
                                                    typename S::I codes[8]) {
  if constexpr (Codes::kNibbles) {
    split_nibbles<S>(rows, block + Codes::kCodesAt, codes);
  } else {
    S::load_columns8(rows, block + Codes::kCodesAt, codes);
  }
#pragma GCC unroll 8
  for (int k = 0; k < 8; ++k) codes[k] = Codes::code(codes[k]);
  if constexpr (Codes::kFifthBitsAt != 0) {
    const auto bits = S::load_column(rows, block + Codes::kFifthBitsAt);
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) {
      codes[k] = S::bit_or(codes[k], S::sixteen_where(S::repeat_byte(bits, k / 2), k % 2));
    }
  }
}

// MXFP4's scales from the exponents e in each lane: 2^(e - 128), half of what E8M0 says because the
// codes are doubled.
template <class S>
inline typename S::F exponent_scale(typename S::I e) {
  const auto normal = S::shl32(S::sub32(e, S::set32(1)), 23);
  const auto subnormal = S::shl32_by(S::set32(0x00200000), e);
  const auto bits = S::select(S::greater(S::set32(2), e), subnormal, normal);
  return S::as_float(S::select(S::greater(e, S::set32(254)), S::set32(0x7FC00000), bits));
}

// The scales of four blocks, and their minima where they have some.
template <class S, class Codes, class Rows>
[[gnu::always_inline]] inline void read_scales(const Rows& rows, std::size_t offset,
                                               typename S::F scales[2][4]) {
  if constexpr (Codes::kScale == BlockScale::exponent) {
    typename S::I exponents[4];
    S::template load_block_bytes<Codes::kBytes>(rows, offset, exponents);
    for (int b = 0; b < 4; ++b) scales[0][b] = exponent_scale<S>(exponents[b]);
  } else {
    S::template load_block_halves<Codes::kBytes, 0>(rows, offset, scales[0]);
    if constexpr (Codes::kScale == BlockScale::half_and_minimum) {
      S::template load_block_halves<Codes::kBytes, 2>(rows, offset, scales[1]);
    }
  }
}

template <class S, class Codes>
inline void unpack_four(const std::uint8_t* const* rows, std::size_t offset, std::uint8_t* out,
                        std::size_t stride) {
  constexpr bool kHasMinimum = Codes::kScale == BlockScale::half_and_minimum;
  constexpr CodeForm kForm = kHasMinimum ? CodeForm::minimum : CodeForm::signed_codes;
#pragma GCC unroll 4
  for (int b = 0; b < 4; ++b) {
    typename S::I codes[8];
    read_block_codes<S, Codes>(rows, offset + b * Codes::kBytes, codes);
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) {
      S::store_record(out + b * stride, k, panel_codes<S, kForm, Codes::kOffset>(codes[k]));
    }
  }
  typename S::F scales[2][4];
  read_scales<S, Codes>(rows, offset, scales);
  for (int b = 0; b < 4; ++b) {
    S::store_record(out + b * stride, 8, scales[0][b]);
    if constexpr (kHasMinimum) S::store_record(out + b * stride, 9, scales[1][b]);
  }
}

// The last four blocks overlap those before them where the chunk isn't a multiple of four.
template <class S, template <class> class Codes>
void unpack_blocks32(const PanelSource<S>& source, std::uint32_t first, std::uint32_t steps,
                     std::uint8_t* out, std::size_t stride, std::byte* temporary) {
  if (steps < 4) return unpack_codes<S>(source, first, steps, out, stride, temporary);
  constexpr int kBytes = Codes<S>::kBytes;
  for (std::uint32_t i = 0; i < steps;) {
    const std::size_t offset = std::size_t{first + i} * kBytes;
    prefetch_share(source, offset, 4 * kBytes);
    unpack_four<S, Codes<S>>(source.rows, offset, out + i * stride, stride);
    i += 4;
    if (i < steps && steps - i < 4) i = steps - 4;
  }
}

}  // namespace
}  // namespace edgerunner::cpu
