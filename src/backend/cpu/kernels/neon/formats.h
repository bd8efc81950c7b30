#pragma once

// How the quantised formats read as signed 8-bit codes: one struct a format, whose read() gives the
// 32 weights of a sub-block. The layouts of the blocks stand in tensor/blocks.h, what becomes of
// the codes at CodeForm; a code here has no offset.

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/codes.h"

namespace edgerunner::cpu {
namespace {

// A sub-block of one row.
struct RowCodes {
  int8x16_t code[2];      // of each half
  float scale = 0;        // in half_scales of the first half
  float second = 0;       // minimum, or in half_scales the scale of the second half
  std::int32_t pair = 0;  // in half_minima: the two minimum codes, 16 bits each
};

inline float half_at(const std::uint8_t* p) {
  __fp16 value = 0;
  __builtin_memcpy(&value, p, sizeof value);
  return static_cast<float>(value);
}

inline uint8x16_t low_nibbles(uint8x16_t x) { return vandq_u8(x, vdupq_n_u8(0x0F)); }
inline uint8x16_t high_nibbles(uint8x16_t x) { return vshrq_n_u8(x, 4); }
inline uint8x16_t shift_right(uint8x16_t x, int bits) {
  return vshlq_u8(x, vdupq_n_s8(static_cast<std::int8_t>(-bits)));
}
inline int8x16_t minus(uint8x16_t x, std::uint8_t offset) {
  return vreinterpretq_s8_u8(vsubq_u8(x, vdupq_n_u8(offset)));
}

// Bit i of the two bytes at p, as `value` or zero in lane i.
inline uint8x16_t bits_as(const std::uint8_t* p, std::uint8_t value) {
  constexpr std::uint8_t kBits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const uint8x16_t spread = vcombine_u8(vdup_n_u8(p[0]), vdup_n_u8(p[1]));
  return vandq_u8(vtstq_u8(spread, vld1q_u8(kBits)), vdupq_n_u8(value));
}

inline constexpr std::int8_t kIq4Codes[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                              1,    13,   25,  38,  53,  69,  89,  113};
inline constexpr std::int8_t kMxfp4Codes[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                                0, -1, -2, -3, -4, -6, -8, -12};

inline void read_table(const std::uint8_t* nibbles, const std::int8_t* table, RowCodes& out) {
  const uint8x16_t bytes = vld1q_u8(nibbles);
  const int8x16_t values = vld1q_s8(table);
  out.code[0] = vqtbl1q_s8(values, low_nibbles(bytes));
  out.code[1] = vqtbl1q_s8(values, high_nibbles(bytes));
}

// ---- Blocks of 32.

struct Q4_0Format {
  static constexpr CodeForm kForm = CodeForm::signed_codes;
  static constexpr std::size_t kBytes = 18;
  static constexpr int kSubBlocks = 1;
  static void read(const std::uint8_t* b, int, RowCodes& out) {
    const uint8x16_t bytes = vld1q_u8(b + 2);
    out.code[0] = minus(low_nibbles(bytes), 8);
    out.code[1] = minus(high_nibbles(bytes), 8);
    out.scale = half_at(b);
  }
};

struct Q4_1Format {
  static constexpr CodeForm kForm = CodeForm::minimum;
  static constexpr std::size_t kBytes = 20;
  static constexpr int kSubBlocks = 1;
  static void read(const std::uint8_t* b, int, RowCodes& out) {
    const uint8x16_t bytes = vld1q_u8(b + 4);
    out.code[0] = minus(low_nibbles(bytes), 0);
    out.code[1] = minus(high_nibbles(bytes), 0);
    out.scale = half_at(b);
    out.second = half_at(b + 2);
  }
};

struct Q5_0Format {
  static constexpr CodeForm kForm = CodeForm::signed_codes;
  static constexpr std::size_t kBytes = 22;
  static constexpr int kSubBlocks = 1;
  static void read(const std::uint8_t* b, int, RowCodes& out) {
    const uint8x16_t bytes = vld1q_u8(b + 6);
    out.code[0] = minus(vorrq_u8(low_nibbles(bytes), bits_as(b + 2, 16)), 16);
    out.code[1] = minus(vorrq_u8(high_nibbles(bytes), bits_as(b + 4, 16)), 16);
    out.scale = half_at(b);
  }
};

struct Q5_1Format {
  static constexpr CodeForm kForm = CodeForm::minimum;
  static constexpr std::size_t kBytes = 24;
  static constexpr int kSubBlocks = 1;
  static void read(const std::uint8_t* b, int, RowCodes& out) {
    const uint8x16_t bytes = vld1q_u8(b + 8);
    out.code[0] = minus(vorrq_u8(low_nibbles(bytes), bits_as(b + 4, 16)), 0);
    out.code[1] = minus(vorrq_u8(high_nibbles(bytes), bits_as(b + 6, 16)), 0);
    out.scale = half_at(b);
    out.second = half_at(b + 2);
  }
};

struct Q8_0Format {
  static constexpr CodeForm kForm = CodeForm::signed_codes;
  static constexpr std::size_t kBytes = 34;
  static constexpr int kSubBlocks = 1;
  static void read(const std::uint8_t* b, int, RowCodes& out) {
    out.code[0] = vreinterpretq_s8_u8(vld1q_u8(b + 2));
    out.code[1] = vreinterpretq_s8_u8(vld1q_u8(b + 18));
    out.scale = half_at(b);
  }
};

struct Iq4NlFormat {
  static constexpr CodeForm kForm = CodeForm::signed_codes;
  static constexpr std::size_t kBytes = 18;
  static constexpr int kSubBlocks = 1;
  static void read(const std::uint8_t* b, int, RowCodes& out) {
    read_table(b + 2, kIq4Codes, out);
    out.scale = half_at(b);
  }
};

struct Mxfp4Format {
  static constexpr CodeForm kForm = CodeForm::signed_codes;
  static constexpr std::size_t kBytes = 17;
  static constexpr int kSubBlocks = 1;
  static void read(const std::uint8_t* b, int, RowCodes& out) {
    read_table(b + 1, kMxfp4Codes, out);
    // 2^(e - 128), half of what the exponent says because the codes are doubled.
    const std::uint32_t e = b[0];
    std::uint32_t bits = e < 2 ? 0x00200000U << e : (e - 1) << 23;
    if (e == 255) bits = 0x7FC00000U;
    __builtin_memcpy(&out.scale, &bits, sizeof bits);
  }
};

// ---- Blocks of 256 in sub-blocks that have a scale of their own.

struct Iq4XsFormat {
  static constexpr CodeForm kForm = CodeForm::signed_codes;
  static constexpr std::size_t kBytes = 136;
  static constexpr int kSubBlocks = 8;
  static void read(const std::uint8_t* b, int s, RowCodes& out) {
    read_table(b + 8 + 16 * s, kIq4Codes, out);
    const int low = (b[4 + s / 2] >> (4 * (s % 2))) & 0xF;
    const int high = (b[2 + s / 4] >> (2 * (s % 4))) & 3;
    out.scale = half_at(b) * static_cast<float>((low | (high << 4)) - 32);
  }
};

struct Q2KFormat {
  static constexpr CodeForm kForm = CodeForm::half_minima;
  static constexpr std::size_t kBytes = 84;
  static constexpr int kSubBlocks = 8;
  static void read(const std::uint8_t* b, int s, RowCodes& out) {
    const std::uint8_t* scales = b + 2 * s;
    for (int h = 0; h < 2; ++h) {
      const uint8x16_t fields = vld1q_u8(b + 16 + 32 * (s / 4) + 16 * h);
      const uint8x16_t two = vandq_u8(shift_right(fields, 2 * (s % 4)), vdupq_n_u8(3));
      out.code[h] = vreinterpretq_s8_u8(vmulq_u8(two, vdupq_n_u8(scales[h] & 0xF)));
    }
    out.scale = half_at(b + 80);
    out.second = -half_at(b + 82);
    out.pair = (scales[0] >> 4) | (scales[1] >> 4) << 16;
  }
};

struct Q3KFormat {
  static constexpr CodeForm kForm = CodeForm::signed_codes;
  static constexpr std::size_t kBytes = 110;
  static constexpr int kSubBlocks = 8;
  // Negated with the scale, because scale times code can be 128.
  static void read(const std::uint8_t* b, int s, RowCodes& out) {
    for (int h = 0; h < 2; ++h) {
      const uint8x16_t fields = vld1q_u8(b + 32 + 32 * (s / 4) + 16 * h);
      const uint8x16_t two = vandq_u8(shift_right(fields, 2 * (s % 4)), vdupq_n_u8(3));
      const uint8x16_t mask = vdupq_n_u8(static_cast<std::uint8_t>(1U << s));
      const uint8x16_t bit = vandq_u8(vtstq_u8(vld1q_u8(b + 16 * h), mask), vdupq_n_u8(4));
      const int j = 2 * s + h;
      const int low = (b[96 + j % 8] >> (4 * (j / 8))) & 0xF;
      const int high = (b[104 + j % 4] >> (2 * (j / 4))) & 3;
      const auto scale = static_cast<std::int8_t>(32 - (low | (high << 4)));
      out.code[h] = vmulq_s8(minus(vorrq_u8(two, bit), 4), vdupq_n_s8(scale));
    }
    out.scale = -half_at(b + 108);
  }
};

// The scales of Q4_K and Q5_K: d, dmin, and eight 6-bit scales and minima.
inline void read_packed_scale(const std::uint8_t* b, int s, RowCodes& out) {
  const std::uint8_t* p = b + 4;
  int scale = p[s % 4] & 63;
  int minimum = p[s % 4 + 4] & 63;
  if (s >= 4) {
    scale = (p[s + 4] & 0xF) | ((p[s - 4] >> 6) << 4);
    minimum = (p[s + 4] >> 4) | ((p[s] >> 6) << 4);
  }
  out.scale = half_at(b) * static_cast<float>(scale);
  out.second = -(half_at(b + 2) * static_cast<float>(minimum));
}

struct Q4KFormat {
  static constexpr CodeForm kForm = CodeForm::minimum;
  static constexpr std::size_t kBytes = 144;
  static constexpr int kSubBlocks = 8;
  static void read(const std::uint8_t* b, int s, RowCodes& out) {
    for (int h = 0; h < 2; ++h) {
      const uint8x16_t bytes = vld1q_u8(b + 16 + 32 * (s / 2) + 16 * h);
      out.code[h] = minus(low_nibbles(shift_right(bytes, 4 * (s % 2))), 0);
    }
    read_packed_scale(b, s, out);
  }
};

struct Q5KFormat {
  static constexpr CodeForm kForm = CodeForm::minimum;
  static constexpr std::size_t kBytes = 176;
  static constexpr int kSubBlocks = 8;
  static void read(const std::uint8_t* b, int s, RowCodes& out) {
    const uint8x16_t mask = vdupq_n_u8(static_cast<std::uint8_t>(1U << s));
    for (int h = 0; h < 2; ++h) {
      const uint8x16_t bytes = vld1q_u8(b + 48 + 32 * (s / 2) + 16 * h);
      const uint8x16_t bit = vandq_u8(vtstq_u8(vld1q_u8(b + 16 + 16 * h), mask), vdupq_n_u8(16));
      out.code[h] = minus(vorrq_u8(low_nibbles(shift_right(bytes, 4 * (s % 2))), bit), 0);
    }
    read_packed_scale(b, s, out);
  }
};

struct Q6KFormat {
  static constexpr CodeForm kForm = CodeForm::half_scales;
  static constexpr std::size_t kBytes = 210;
  static constexpr int kSubBlocks = 8;
  static void read(const std::uint8_t* b, int s, RowCodes& out) {
    const int part = s % 4;  // of the half of 128
    for (int h = 0; h < 2; ++h) {
      const uint8x16_t bytes = vld1q_u8(b + 64 * (s / 4) + 32 * (part % 2) + 16 * h);
      const uint8x16_t low = low_nibbles(shift_right(bytes, 4 * (part / 2)));
      const uint8x16_t fields = vld1q_u8(b + 128 + 32 * (s / 4) + 16 * h);
      const uint8x16_t two = vandq_u8(shift_right(fields, 2 * part), vdupq_n_u8(3));
      out.code[h] = minus(vorrq_u8(low, vshlq_n_u8(two, 4)), 32);
    }
    const float d = half_at(b + 208);
    const auto scale = [&](int h) {
      return d * static_cast<float>(static_cast<std::int8_t>(b[192 + 2 * s + h]));
    };
    out.scale = scale(0);
    out.second = scale(1);
  }
};

}  // namespace
}  // namespace edgerunner::cpu
