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

  ScalesAndMinima(const std::uint8_t* const* rows, std::size_t block) {
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
  void store(std::uint8_t* record, int j) const {
    S::store_record(record, 8, S::mul(d, S::to_float(byte_of(scales[j / 4], j % 4))));
    S::store_record(record, 9, S::mul(dmin, S::to_float(byte_of(minima[j / 4], j % 4))));
  }
};

template <class S>
struct Q4KBlock : Fields<S> {
  using typename Fields<S>::I;
  using Fields<S>::bytes_and;
  static constexpr int kBytes = 144;
  static void unpack(const std::uint8_t* const* rows, std::size_t block, std::uint8_t* out,
                     std::size_t stride) {
    const ScalesAndMinima<S> scales(rows, block);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) scales.store(out + j * stride, j);
    for (int pair = 0; pair < 4; ++pair) {
      std::uint8_t* record = out + 2 * pair * stride;
      I columns[8];
      S::load_columns8(rows, block + 16 + 32 * pair, columns);
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) {
        S::store_record(record, k, bytes_and(columns[k], 0x0F));
        S::store_record(record + stride, k, bytes_and(S::shr16(columns[k], 4), 0x0F));
      }
    }
  }
};

template <class S>
struct Q5KBlock : Fields<S> {
  using typename Fields<S>::I;
  using Fields<S>::bytes_and;
  static constexpr int kBytes = 176;
  static void unpack(const std::uint8_t* const* rows, std::size_t block, std::uint8_t* out,
                     std::size_t stride) {
    const ScalesAndMinima<S> scales(rows, block);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) scales.store(out + j * stride, j);
    I high[8];  // bit j: of sub-block j
    S::load_columns8(rows, block + 16, high);
#pragma GCC unroll 4
    for (int pair = 0; pair < 4; ++pair) {
      std::uint8_t* record = out + 2 * pair * stride;
      I columns[8];
      S::load_columns8(rows, block + 48 + 32 * pair, columns);
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) {
        I& bits = high[k];  // of this pair in bits 0 and 1
        S::store_record(record, k,
                        S::bit_or(bytes_and(columns[k], 0x0F), bytes_and(S::shl16(bits, 4), 0x10)));
        S::store_record(record + stride, k,
                        S::bit_or(bytes_and(S::shr16(columns[k], 4), 0x0F),
                                  bytes_and(S::shl16(bits, 3), 0x10)));
        bits = S::shr16(bits, 2);
      }
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
  static void unpack(const std::uint8_t* const* rows, std::size_t block, std::uint8_t* out,
                     std::size_t stride) {
    I tail[4];  // ends with the block's last bytes: a scale more, and d
    S::load_columns4(rows, block + kBytes - 16, tail);
    const F d = high_half(tail[3]);
    I scales[4];
    S::load_columns4(rows, block + 192, scales);
#pragma GCC unroll 16
    for (int j = 0; j < 16; ++j) {
      S::store_record(out + j / 2 * stride, 8 + j % 2,
                      S::mul(d, S::to_float(signed_byte_of(scales[j / 4], j % 4))));
    }
    const I offset = S::set8(kCodeOffset - 32);
    for (int h = 0; h < 2; ++h) {
      std::uint8_t* record = out + 4 * h * stride;
      I high[8];
      S::load_columns8(rows, block + 128 + 32 * h, high);
      for (int part = 0; part < 2; ++part) {  // low nibbles: sub-block `part`, high: part + 2
        I columns[8];
        S::load_columns8(rows, block + 64 * h + 32 * part, columns);
#pragma GCC unroll 8
        for (int k = 0; k < 8; ++k) {
          const I bits = S::shr16(high[k], 2 * part);
          const I first =
              S::bit_or(bytes_and(columns[k], 0x0F), bytes_and(S::shl16(bits, 4), 0x30));
          const I third =
              S::bit_or(bytes_and(S::shr16(columns[k], 4), 0x0F), bytes_and(bits, 0x30));
          S::store_record(record + part * stride, k, S::add8(first, offset));
          S::store_record(record + (part + 2) * stride, k, S::add8(third, offset));
        }
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
  static void unpack(const std::uint8_t* const* rows, std::size_t block, std::uint8_t* out,
                     std::size_t stride) {
    I tail[4];
    S::load_columns4(rows, block + kBytes - 16, tail);
    const F d = low_half(tail[3]);
    const F dmin = S::negate(high_half(tail[3]));
    I scales[4];
    S::load_columns4(rows, block, scales);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      const I minima = bytes_and(S::shr16(scales[j / 2], 4), 0x0F);
      const I pair =
          S::bit_or(byte_of(minima, 2 * (j % 2)), S::shl32(byte_of(minima, 2 * (j % 2) + 1), 16));
      S::store_record(out + j * stride, 8, d);
      S::store_record(out + j * stride, 9, dmin);
      S::store_record(out + j * stride, 10, pair);
    }
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        I columns[4];
        S::load_columns4(rows, block + 16 + 32 * h + 16 * half, columns);
#pragma GCC unroll 4
        for (int s = 0; s < 4; ++s) {
          const int j = 2 * (4 * h + s) + half;
          const I scale = bytes_and(byte_of(scales[j / 4], j % 4), 0x0F);
          const I words = S::bit_or(scale, S::shl32(scale, 16));
#pragma GCC unroll 4
          for (int k = 0; k < 4; ++k) {
            // Two bytes of at most 3 times at most 15: no carry between them.
            const I q = bytes_and(S::shr16(columns[k], 2 * s), 3);
            S::store_record(out + (4 * h + s) * stride, 4 * half + k, S::mul16(q, words));
          }
        }
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
  static void unpack(const std::uint8_t* const* rows, std::size_t block, std::uint8_t* out,
                     std::size_t stride) {
    I tail[4];
    S::load_columns4(rows, block + kBytes - 16, tail);
    const F d = S::negate(high_half(tail[3]));
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
    for (int j = 0; j < 8; ++j) S::store_record(out + j * stride, 8, d);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      I high_bits[4];
      S::load_columns4(rows, block + 16 * half, high_bits);
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        I columns[4];
        S::load_columns4(rows, block + 32 + 32 * h + 16 * half, columns);
#pragma GCC unroll 4
        for (int s = 0; s < 4; ++s) {
          const int j = 2 * (4 * h + s) + half;
          const SignedScale scale(byte_of(scales[j / 4], j % 4));
#pragma GCC unroll 4
          for (int k = 0; k < 4; ++k) {
            const I bit = bytes_and(S::shr16(high_bits[k], 4 * h + s), 1);
            const I q = S::bit_or(bytes_and(S::shr16(columns[k], 2 * s), 3), S::shl16(bit, 2));
            S::store_record(out + (4 * h + s) * stride, 4 * half + k, scale.code(q));
          }
        }
      }
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
  static void unpack(const std::uint8_t* const* rows, std::size_t block, std::uint8_t* out,
                     std::size_t stride) {
    I head[4];
    S::load_columns4(rows, block, head);
    const F d = low_half(head[0]);
    const I high = S::shr32(head[0], 16);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      const I four = S::bit_and(S::shr32(head[1], 4 * j), S::set32(0xF));
      const I two = S::bit_and(S::shr32(high, 2 * j), S::set32(3));
      const I scale = S::sub32(S::bit_or(four, S::shl32(two, 4)), S::set32(32));
      S::store_record(out + j * stride, 8, S::mul(d, S::to_float(scale)));
    }
    for (int j = 0; j < 8; ++j) {
      I codes[8];
      read_table_codes<S, kIq4CodeValues>(rows, block + 8 + 16 * j, codes);
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) S::store_record(out + j * stride, k, codes[k]);
    }
  }
};

template <class S, template <class> class Block>
void unpack_k(const PanelSource<S>& source, std::uint32_t first, std::uint32_t steps,
              std::uint8_t* out, std::size_t stride, std::byte*) {
  for (std::uint32_t i = 0; i < steps; i += 8) {
    const std::size_t block = std::size_t{(first + i) / 8} * Block<S>::kBytes;
    prefetch_share(source, block, Block<S>::kBytes);
    Block<S>::unpack(source.rows, block, out + i * stride, stride);
  }
}

}  // namespace
}  // namespace edgerunner::cpu
