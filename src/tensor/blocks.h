#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>

#include "base/half.h"

namespace edgerunner::blocks {

// The blocks of GGUF's quantised types as they stand in a file: little-endian, packed, and of
// alignment 1, so that a block can be read wherever the mapping puts it. `kLength` is the number of
// consecutive elements of a row in a block. How the codes of the elements are laid out stands with
// each block; in the formulas i is the element's index in the block, nibble(b, 0) the low four bits
// of byte b and nibble(b, 1) the high four.
//
// Source: the block definitions of the GGUF format (github.com/ggml-org/ggml, ggml-common.h and the
// Python package gguf, quants.py); for MXFP4 the OCP Microscaling Formats Specification 1.0.
//
// Every product of scale, sub-block's scale and code is exact in f32 (they have at most 23
// significant bits together: 11 of the f16, 7 and 5 in Q6_K), so a value is rounded once at most,
// where an offset is added, and a fused multiply-add gives the same bits.

struct F16 {
  std::array<std::uint8_t, 2> bytes;

  constexpr std::uint16_t bits() const {
    return static_cast<std::uint16_t>(bytes[0] | (bytes[1] << 8));
  }
  constexpr void set_bits(std::uint16_t bits) {
    bytes = {static_cast<std::uint8_t>(bits & 0xFF), static_cast<std::uint8_t>(bits >> 8)};
  }
  float value() const { return f16_to_f32(bits()); }
};

// ---- Blocks of 32: one scale. Elements i and i + 16 share byte i: nibble(qs[i % 16], i / 16).

// d * (nibble - 8)
struct Q4_0 {
  static constexpr int kLength = 32;
  F16 d;
  std::array<std::uint8_t, 16> qs;
};

// d * nibble + m
struct Q4_1 {
  static constexpr int kLength = 32;
  F16 d;
  F16 m;
  std::array<std::uint8_t, 16> qs;
};

// d * (nibble + 16 * bit - 16); the fifth bit of element i is bit i % 8 of qh[i / 8]
struct Q5_0 {
  static constexpr int kLength = 32;
  F16 d;
  std::array<std::uint8_t, 4> qh;
  std::array<std::uint8_t, 16> qs;
};

// d * (nibble + 16 * bit) + m; fifth bits as in Q5_0
struct Q5_1 {
  static constexpr int kLength = 32;
  F16 d;
  F16 m;
  std::array<std::uint8_t, 4> qh;
  std::array<std::uint8_t, 16> qs;
};

// d * qs[i]
struct Q8_0 {
  static constexpr int kLength = 32;
  F16 d;
  std::array<std::int8_t, 32> qs;
};

// The values that the codes of IQ4_NL and IQ4_XS stand for.
inline constexpr std::array<std::int8_t, 16> kIq4Values = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// d * kIq4Values[nibble]
struct IQ4_NL {
  static constexpr int kLength = 32;
  F16 d;
  std::array<std::uint8_t, 16> qs;
};

// Twice the values that MXFP4's 4-bit floats (E2M1) stand for. Minus zero counts as zero.
inline constexpr std::array<std::int8_t, 16> kMxfp4Values = {0, 1,  2,  3,  4,  6,  8,  12,
                                                             0, -1, -2, -3, -4, -6, -8, -12};

// 2^(e - 128) * kMxfp4Values[nibble]; e = 255 is NaN
struct MXFP4 {
  static constexpr int kLength = 32;
  std::uint8_t e;
  std::array<std::uint8_t, 16> qs;

  // The scale of the doubled values: half of E8M0's 2^(e - 127). Subnormal for e = 0 and 1.
  constexpr float half_scale() const {
    if (e == 255) return std::numeric_limits<float>::quiet_NaN();
    return std::bit_cast<float>(e < 2 ? 0x00200000U << e : (e - 1U) << 23);
  }
};

// ---- Blocks of 256 in sub-blocks that have a scale of their own ("K" formats).

// Sub-blocks of 16, j = i / 16: d * nibble(scales[j], 0) * q - dmin * nibble(scales[j], 1). Two
// bits an element: in each half of 128, element i uses byte qs[32 * (i / 128) + i % 32], bits 2 *
// (i % 128 / 32) and up.
struct Q2_K {
  static constexpr int kLength = 256;
  std::array<std::uint8_t, 16> scales;
  std::array<std::uint8_t, 64> qs;
  F16 d;
  F16 dmin;
};

// Sub-blocks of 16: d * (scale - 32) * (q + 4 * bit - 4). Two bits an element in qs as in Q2_K; the
// third is bit i / 32 of hmask[i % 32]. Scale j has its low four bits in nibble(scales[j % 8], j /
// 8) and the two above in scales[8 + j % 4], bits 2 * (j / 4) and up.
struct Q3_K {
  static constexpr int kLength = 256;
  std::array<std::uint8_t, 32> hmask;
  std::array<std::uint8_t, 64> qs;
  std::array<std::uint8_t, 12> scales;
  F16 d;

  // Scale j without its offset of 32.
  constexpr int scale(int j) const {
    const int low = (scales[j % 8] >> (4 * (j / 8))) & 0xF;
    const int high = (scales[8 + j % 4] >> (2 * (j / 4))) & 0x3;
    return (low | (high << 4)) - 32;
  }
};

// The eight 6-bit scales and minima of Q4_K and Q5_K: the first four of each in the low six bits of
// bytes 0 to 3 and 4 to 7, the others in the nibbles of bytes 8 to 11 (low: scale, high: minimum)
// with their two high bits on top of the bytes of the first four.
struct PackedScales {
  std::array<std::uint8_t, 12> bytes;

  constexpr int scale(int j) const {
    if (j < 4) return bytes[j] & 63;
    return (bytes[j + 4] & 0xF) | ((bytes[j - 4] >> 6) << 4);
  }
  constexpr int minimum(int j) const {
    if (j < 4) return bytes[j + 4] & 63;
    return (bytes[j + 4] >> 4) | ((bytes[j] >> 6) << 4);
  }
};

// Sub-blocks of 32, j = i / 32: d * scale(j) * nibble - dmin * minimum(j), with
// nibble(qs[32 * (i / 64) + i % 32], i % 64 / 32).
struct Q4_K {
  static constexpr int kLength = 256;
  F16 d;
  F16 dmin;
  PackedScales scales;
  std::array<std::uint8_t, 128> qs;
};

// As Q4_K, with 16 * bit added to the nibble: bit i / 32 of qh[i % 32].
struct Q5_K {
  static constexpr int kLength = 256;
  F16 d;
  F16 dmin;
  PackedScales scales;
  std::array<std::uint8_t, 32> qh;
  std::array<std::uint8_t, 128> qs;
};

// Sub-blocks of 16, j = i / 16: d * scales[j] * (low + 16 * high - 32). In each half of 128,
// h = i / 128 and k = i % 128: low is nibble(ql[64 * h + k % 64], k / 64), high the two bits
// 2 * (k / 32) and up of qh[32 * h + k % 32].
struct Q6_K {
  static constexpr int kLength = 256;
  std::array<std::uint8_t, 128> ql;
  std::array<std::uint8_t, 64> qh;
  std::array<std::int8_t, 16> scales;
  F16 d;
};

// Sub-blocks of 32, j = i / 32: d * scale(j) * kIq4Values[nibble], with
// nibble(qs[16 * j + i % 16], i % 32 / 16).
struct IQ4_XS {
  static constexpr int kLength = 256;
  F16 d;
  std::array<std::uint8_t, 2> scales_h;
  std::array<std::uint8_t, 4> scales_l;
  std::array<std::uint8_t, 128> qs;

  // Scale j without its offset of 32.
  constexpr int scale(int j) const {
    const int low = (scales_l[j / 2] >> (4 * (j % 2))) & 0xF;
    const int high = (scales_h[j / 4] >> (2 * (j % 4))) & 0x3;
    return (low | (high << 4)) - 32;
  }
};

static_assert(sizeof(Q4_0) == 18 && sizeof(Q4_1) == 20 && sizeof(Q5_0) == 22 &&
              sizeof(Q5_1) == 24 && sizeof(Q8_0) == 34 && sizeof(IQ4_NL) == 18 &&
              sizeof(MXFP4) == 17);
static_assert(sizeof(Q2_K) == 84 && sizeof(Q3_K) == 110 && sizeof(Q4_K) == 144 &&
              sizeof(Q5_K) == 176 && sizeof(Q6_K) == 210 && sizeof(IQ4_XS) == 136);
static_assert(alignof(Q4_1) == 1 && alignof(Q6_K) == 1 && alignof(IQ4_XS) == 1);

}  // namespace edgerunner::blocks
