#pragma once

// Unpacks the formats whose blocks hold 256 weights in sub-blocks with scales of their own, a block
// of S::kLanes rows at a time. With a row a lane, packed scales are unpacked for all rows at once.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/panel_kernel.h"
#include "backend/cpu/kernels/unpack_blocks32.h"

namespace edgerunner::cpu {
namespace {

// Operations on packed fields, with a weight row a lane.
template <class S>
struct Fields {
  using F = typename S::F;
  using I = typename S::I;

  // The f16 in the low or high half of each lane.
  static F low_half(I lanes) { return S::low_half(lanes); }
  static F high_half(I lanes) { return S::low_half(S::shr32(lanes, 16)); }
  static I bytes_and(I x, int mask) { return S::bit_and(x, S::set8(mask)); }
  // Byte j of each lane, as unsigned and as signed integer.
  static I byte_of(I lanes, int j) { return S::bit_and(S::shr32(lanes, 8 * j), S::set32(0xFF)); }
  static I signed_byte_of(I lanes, int j) { return S::sar32(S::shl32(lanes, 24 - 8 * j), 24); }
};

// PackedScales of Q4_K and Q5_K, by the block's first 16 bytes.
template <class S>
struct ScalesAndMinima : Fields<S> {
  using typename Fields<S>::F;
  using typename Fields<S>::I;
  using Fields<S>::bytes_and;
  using Fields<S>::byte_of;
  using Fields<S>::low_half;
  using Fields<S>::high_half;

  F d;
  F dmin;       // negated
  I scales[2];  // of sub-blocks 0 to 3 and 4 to 7, a byte each
  I minima[2];

  template <class Rows>
  [[gnu::always_inline]] ScalesAndMinima(const Rows& rows, std::size_t block) {
    I head[4];
    S::load_columns4(rows, block, head);
    d = low_half(head[0]);
    dmin = S::negate(high_half(head[0]));
    scales[0] = bytes_and(head[1], 63);
    minima[0] = bytes_and(head[2], 63);
    scales[1] = S::bit_or(bytes_and(head[3], 0x0F), bytes_and(S::shr16(head[1], 2), 0x30));
    minima[1] =
        S::bit_or(bytes_and(S::shr16(head[3], 4), 0x0F), bytes_and(S::shr16(head[2], 2), 0x30));
  }
  [[gnu::always_inline]] BlockScales<S> of(int j) const {
    BlockScales<S> result;
    result.first = S::mul(d, S::to_float(byte_of(scales[j / 4], j % 4)));
    result.second = S::mul(dmin, S::to_float(byte_of(minima[j / 4], j % 4)));
    return result;
  }
};

// A block is read 32 weights at a time, in their order: read() calls use(codes, scales) for each.
// kOffset is what the codes are above the integers of signed weights.

template <class S>
struct Q4KBlock : Fields<S> {
  using typename Fields<S>::I;
  using Fields<S>::bytes_and;
  static constexpr int kBytes = 144;
  static constexpr int kOffset = 0;
  template <class Rows, class Use>
  [[gnu::always_inline]] static void read(const Rows& rows, std::size_t block, const Use& use) {
    const ScalesAndMinima<S> scales(rows, block);
#pragma GCC unroll 1
    for (int pair = 0; pair < 4; ++pair) {
      I columns[8];
      S::load_columns8(rows, block + 16 + 32 * static_cast<std::size_t>(pair), columns);
#pragma GCC unroll 2
      for (int high = 0; high < 2; ++high) {
        I codes[8];
#pragma GCC unroll 8
        for (int k = 0; k < 8; ++k) {
          codes[k] = bytes_and(high == 0 ? columns[k] : S::shr16(columns[k], 4), 0x0F);
        }
        use(codes, scales.of(2 * pair + high));
      }
    }
  }
};

template <class S>
struct Q5KBlock : Fields<S> {
  using typename Fields<S>::I;
  using Fields<S>::bytes_and;
  static constexpr int kBytes = 176;
  static constexpr int kOffset = 0;
  template <class Rows, class Use>
  [[gnu::always_inline]] static void read(const Rows& rows, std::size_t block, const Use& use) {
    const ScalesAndMinima<S> scales(rows, block);
    I fifth[8];  // bits 0 and 1: of this pair
    S::load_columns8(rows, block + 16, fifth);
#pragma GCC unroll 1
    for (int pair = 0; pair < 4; ++pair) {
      I columns[8];
      S::load_columns8(rows, block + 48 + 32 * static_cast<std::size_t>(pair), columns);
#pragma GCC unroll 2
      for (int high = 0; high < 2; ++high) {
        I codes[8];
#pragma GCC unroll 8
        for (int k = 0; k < 8; ++k) {
          const I four = bytes_and(high == 0 ? columns[k] : S::shr16(columns[k], 4), 0x0F);
          codes[k] = S::bit_or(four, bytes_and(S::shl16(fifth[k], 4 - high), 0x10));
        }
        use(codes, scales.of(2 * pair + high));
      }
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) fifth[k] = S::shr16(fifth[k], 2);
    }
  }
};

template <class S>
struct Q6KBlock : Fields<S> {
  using typename Fields<S>::F;
  using typename Fields<S>::I;
  using Fields<S>::bytes_and;
  using Fields<S>::high_half;
  using Fields<S>::signed_byte_of;
  static constexpr int kBytes = 210;
  static constexpr int kOffset = 32;
  template <class Rows, class Use>
  [[gnu::always_inline]] static void read(const Rows& rows, std::size_t block, const Use& use) {
    I tail[4];  // ends with the block's last bytes: a scale more, and d
    S::load_columns4(rows, block + kBytes - 16, tail);
    const F d = high_half(tail[3]);
    I scales[4];
    S::load_columns4(rows, block + 192, scales);
#pragma GCC unroll 1
    for (int h = 0; h < 2; ++h) {
      const std::size_t half = static_cast<std::size_t>(h);
      I columns[2][8];  // low nibbles: sub-blocks 0 and 1, high: 2 and 3
      S::load_columns8(rows, block + 64 * half, columns[0]);
      S::load_columns8(rows, block + 64 * half + 32, columns[1]);
      I high[8];
      S::load_columns8(rows, block + 128 + 32 * half, high);
#pragma GCC unroll 4
      for (int part = 0; part < 4; ++part) {
        I codes[8];
#pragma GCC unroll 8
        for (int k = 0; k < 8; ++k) {
          const I four = columns[part % 2][k];
          const I two =
              part < 2 ? S::shl16(high[k], 4 - 2 * part) : S::shr16(high[k], 2 * part - 4);
          codes[k] =
              S::bit_or(bytes_and(part < 2 ? four : S::shr16(four, 4), 0x0F), bytes_and(two, 0x30));
        }
        const auto scale = [&](int j) {
          return S::mul(d, S::to_float(signed_byte_of(scales[2 * h + part / 2], j)));
        };
        BlockScales<S> both;
        both.first = scale(2 * (part % 2));
        both.second = scale(2 * (part % 2) + 1);
        use(codes, both);
      }
    }
  }
};

template <class S>
struct Q2KBlock : Fields<S> {
  using typename Fields<S>::F;
  using typename Fields<S>::I;
  using Fields<S>::bytes_and;
  using Fields<S>::low_half;
  using Fields<S>::high_half;
  using Fields<S>::byte_of;
  static constexpr int kBytes = 84;
  static constexpr int kOffset = 0;
  template <class Rows, class Use>
  [[gnu::always_inline]] static void read(const Rows& rows, std::size_t block, const Use& use) {
    I tail[4];
    S::load_columns4(rows, block + kBytes - 16, tail);
    BlockScales<S> result;
    result.first = low_half(tail[3]);
    result.second = S::negate(high_half(tail[3]));
    I scales[4];
    S::load_columns4(rows, block, scales);
#pragma GCC unroll 1
    for (int h = 0; h < 2; ++h) {
      I columns[8];
      S::load_columns8(rows, block + 16 + 32 * static_cast<std::size_t>(h), columns);
#pragma GCC unroll 4
      for (int s = 0; s < 4; ++s) {
        const I four = scales[2 * h + s / 2];  // of sub-blocks of 16
        const I minima = bytes_and(S::shr16(four, 4), 0x0F);
        result.minimum_codes =
            S::bit_or(byte_of(minima, 2 * (s % 2)), S::shl32(byte_of(minima, 2 * (s % 2) + 1), 16));
        I codes[8];
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
          const I scale = bytes_and(byte_of(four, 2 * (s % 2) + half), 0x0F);
          const I words = S::bit_or(scale, S::shl32(scale, 16));
#pragma GCC unroll 4
          for (int k = 4 * half; k < 4 * half + 4; ++k) {
            // Two bytes of at most 3 times at most 15: no carry between them.
            codes[k] = S::mul16(bytes_and(S::shr16(columns[k], 2 * s), 3), words);
          }
        }
        use(codes, result);
      }
    }
  }
};

template <class S>
struct Q3KBlock : Fields<S> {
  using typename Fields<S>::F;
  using typename Fields<S>::I;
  using Fields<S>::bytes_and;
  using Fields<S>::high_half;
  using Fields<S>::byte_of;
  static constexpr int kBytes = 110;
  static constexpr int kOffset = kCodeOffset;
  template <class Rows, class Use>
  [[gnu::always_inline]] static void read(const Rows& rows, std::size_t block, const Use& use) {
    I tail[4];
    S::load_columns4(rows, block + kBytes - 16, tail);
    BlockScales<S> result;
    result.first = S::negate(high_half(tail[3]));
    I packed[4];
    S::load_columns4(rows, block + 96 - 2, packed);  // two bytes early, to end within the block
    const I low[2] = {word_pair(packed[0], packed[1]), word_pair(packed[1], packed[2])};
    const I high = word_pair(packed[2], packed[3]);
    I scales[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const I four = bytes_and(S::shr16(low[i % 2], 4 * (i / 2)), 0x0F);
      const I two = bytes_and(S::shr16(high, 2 * i), 3);
      scales[i] = S::bit_or(four, S::shl16(two, 4));
    }
    I third[8];  // bits 0 to 3: of this half's sub-blocks
    S::load_columns8(rows, block, third);
#pragma GCC unroll 1
    for (int h = 0; h < 2; ++h) {
      I columns[8];
      S::load_columns8(rows, block + 32 + 32 * static_cast<std::size_t>(h), columns);
#pragma GCC unroll 4
      for (int s = 0; s < 4; ++s) {
        I codes[8];
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
          const SignedScale scale(byte_of(scales[2 * h + s / 2], 2 * (s % 2) + half));
#pragma GCC unroll 4
          for (int k = 4 * half; k < 4 * half + 4; ++k) {
            const I bit = bytes_and(S::shr16(third[k], s), 1);
            const I q = S::bit_or(bytes_and(S::shr16(columns[k], 2 * s), 3), S::shl16(bit, 2));
            codes[k] = scale.code(q);
          }
        }
        use(codes, result);
      }
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) third[k] = S::shr16(third[k], 4);
    }
  }

 private:
  // The upper 16 bits of a and the lower of b.
  static I word_pair(I a, I b) { return S::bit_or(S::shr32(a, 16), S::shl32(b, 16)); }

  // 128 - scale * (q - 4) for bytes q < 8 and -32 <= scale < 32. |scale| * q fits a byte, so that
  // 16-bit products have no carry; the sign is put on afterwards.
  struct SignedScale {
    I magnitude;  // in each 16-bit word
    I sign;       // 0 or -1, in each byte
    I base;       // what is left without the product, in each byte

    explicit SignedScale(I biased) {
      const I scale = S::sub32(biased, S::set32(32));
      const I absolute = S::abs32(scale);
      magnitude = S::bit_or(absolute, S::shl32(absolute, 16));
      sign = S::sar32(scale, 31);
      // With p = |scale| * q the code is 128 + 4 * scale - ((p ^ sign) - sign), modulo 256.
      const I rest = S::bit_and(S::add32(S::add32(S::shl32(scale, 2), S::set32(kCodeOffset)), sign),
                                S::set32(0xFF));
      const I pair = S::bit_or(rest, S::shl32(rest, 8));
      base = S::bit_or(pair, S::shl32(pair, 16));
    }
    I code(I q) const { return S::sub8(base, S::bit_xor(S::mul16(q, magnitude), sign)); }
  };
};

template <class S>
struct Iq4XsBlock : Fields<S> {
  using typename Fields<S>::F;
  using typename Fields<S>::I;
  using Fields<S>::low_half;
  static constexpr int kBytes = 136;
  static constexpr int kOffset = kCodeOffset;
  template <class Rows, class Use>
  [[gnu::always_inline]] static void read(const Rows& rows, std::size_t block, const Use& use) {
    I head[4];
    S::load_columns4(rows, block, head);
    const F d = low_half(head[0]);
    I fours = head[1];
    I twos = S::shr32(head[0], 16);
#pragma GCC unroll 1
    for (int j = 0; j < 8; ++j) {
      const I four = S::bit_and(fours, S::set32(0xF));
      const I two = S::bit_and(twos, S::set32(3));
      const I scale = S::sub32(S::bit_or(four, S::shl32(two, 4)), S::set32(32));
      fours = S::shr32(fours, 4);
      twos = S::shr32(twos, 2);
      I codes[8];
      read_table_codes<S, kIq4CodeValues>(rows, block + 8 + 16 * static_cast<std::size_t>(j),
                                          codes);
      BlockScales<S> result;
      result.first = S::mul(d, S::to_float(scale));
      use(codes, result);
    }
  }
};

template <class S, CodeForm kForm, template <class> class Block>
void unpack_k(const PanelSource<S>& source, std::uint32_t first, std::uint32_t steps,
              std::uint8_t* out, std::size_t stride, std::byte*) {
  constexpr int kVectors = q8_record_vectors(kForm);
  for (std::uint32_t i = 0; i < steps; i += 8) {
    const std::size_t block = std::size_t{(first + i) / 8} * Block<S>::kBytes;
    prefetch_share(source, block, Block<S>::kBytes);
    std::uint8_t* record = out + i * stride;
    const auto use = [&](const typename S::I* codes, const BlockScales<S>& scales)
        __attribute__((always_inline)) {
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) {
        S::store_record(record, k, panel_codes<S, kForm, Block<S>::kOffset>(codes[k]));
      }
      S::store_record(record, 8, scales.first);
      if constexpr (kVectors > 9) S::store_record(record, 9, scales.second);
      if constexpr (kVectors > 10) S::store_record(record, 10, scales.minimum_codes);
      record += stride;
    };
    Block<S>::read(source.rows, block, use);
  }
}

}  // namespace
}  // namespace edgerunner::cpu
