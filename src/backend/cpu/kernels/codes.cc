#include "backend/cpu/kernels/codes.h"

#include <span>
#include <string>

#include "backend/cpu/kernels/q8_block.h"
#include "edgerunner/error.h"
#include "tensor/blocks.h"
#include "tensor/dequantize.h"

namespace edgerunner::cpu {
namespace {

// Each overload reads sub-block `s` (32 weights) of a block.

void set_scale(Codes& c, float scale) { c.scale[0] = c.scale[1] = scale; }

int nibble(std::uint8_t byte, int high) { return high != 0 ? byte >> 4 : byte & 0xF; }

std::uint8_t offset_code(int value) { return static_cast<std::uint8_t>(value + kCodeOffset); }

void read(const blocks::Q4_0& b, int, Codes& c) {
  set_scale(c, b.d.value());
  for (int i = 0; i < 32; ++i) c.code[i] = offset_code(nibble(b.qs[i % 16], i / 16) - 8);
}

void read(const blocks::Q4_1& b, int, Codes& c) {
  set_scale(c, b.d.value());
  c.minimum = b.m.value();
  for (int i = 0; i < 32; ++i) c.code[i] = static_cast<std::uint8_t>(nibble(b.qs[i % 16], i / 16));
}

template <class Block>
int five_bits(const Block& b, int i) {
  return nibble(b.qs[i % 16], i / 16) | (((b.qh[i / 8] >> (i % 8)) & 1) << 4);
}

void read(const blocks::Q5_0& b, int, Codes& c) {
  set_scale(c, b.d.value());
  for (int i = 0; i < 32; ++i) c.code[i] = offset_code(five_bits(b, i) - 16);
}

void read(const blocks::Q5_1& b, int, Codes& c) {
  set_scale(c, b.d.value());
  c.minimum = b.m.value();
  for (int i = 0; i < 32; ++i) c.code[i] = static_cast<std::uint8_t>(five_bits(b, i));
}

void read(const blocks::Q8_0& b, int, Codes& c) {
  set_scale(c, b.d.value());
  for (int i = 0; i < 32; ++i) c.code[i] = offset_code(b.qs[i]);
}

void read(const blocks::IQ4_NL& b, int, Codes& c) {
  set_scale(c, b.d.value());
  for (int i = 0; i < 32; ++i) {
    c.code[i] = offset_code(blocks::kIq4Values[nibble(b.qs[i % 16], i / 16)]);
  }
}

void read(const blocks::IQ4_XS& b, int s, Codes& c) {
  set_scale(c, b.d.value() * static_cast<float>(b.scale(s)));
  for (int i = 0; i < 32; ++i) {
    c.code[i] = offset_code(blocks::kIq4Values[nibble(b.qs[16 * s + i % 16], i / 16)]);
  }
}

void read(const blocks::MXFP4& b, int, Codes& c) {
  set_scale(c, b.half_scale());
  for (int i = 0; i < 32; ++i) {
    c.code[i] = offset_code(blocks::kMxfp4Values[nibble(b.qs[i % 16], i / 16)]);
  }
}

// Two-bit field of element i of sub-block s, in Q2_K and Q3_K.
int two_bits(const std::array<std::uint8_t, 64>& qs, int s, int i) {
  return (qs[32 * (s / 4) + i] >> (2 * (s % 4))) & 3;
}

// The product of a code and its sub-block's 4-bit scale fits a byte, so that half blocks with
// scales of their own become one 32-block.
void read(const blocks::Q2_K& b, int s, Codes& c) {
  set_scale(c, b.d.value());
  c.minimum = -b.dmin.value();
  for (int h = 0; h < 2; ++h)
    c.minimum_code[h] = static_cast<std::int16_t>(b.scales[2 * s + h] >> 4);
  for (int i = 0; i < 32; ++i) {
    const int scale = b.scales[2 * s + i / 16] & 0xF;
    c.code[i] = static_cast<std::uint8_t>(scale * two_bits(b.qs, s, i));
  }
}

// scale * code lies in [-124, 128]: negated, with the scale, it fits a signed byte.
void read(const blocks::Q3_K& b, int s, Codes& c) {
  set_scale(c, -b.d.value());
  for (int i = 0; i < 32; ++i) {
    const int code = (two_bits(b.qs, s, i) | (((b.hmask[i] >> s) & 1) << 2)) - 4;
    c.code[i] = offset_code(-b.scale(2 * s + i / 16) * code);
  }
}

template <class Block>
void set_packed_scale(const Block& b, int s, Codes& c) {
  set_scale(c, b.d.value() * static_cast<float>(b.scales.scale(s)));
  c.minimum = -(b.dmin.value() * static_cast<float>(b.scales.minimum(s)));
}

void read(const blocks::Q4_K& b, int s, Codes& c) {
  set_packed_scale(b, s, c);
  for (int i = 0; i < 32; ++i) {
    c.code[i] = static_cast<std::uint8_t>(nibble(b.qs[32 * (s / 2) + i], s % 2));
  }
}

void read(const blocks::Q5_K& b, int s, Codes& c) {
  set_packed_scale(b, s, c);
  for (int i = 0; i < 32; ++i) {
    const int high = ((b.qh[i] >> s) & 1) << 4;
    c.code[i] = static_cast<std::uint8_t>(nibble(b.qs[32 * (s / 2) + i], s % 2) | high);
  }
}

void read(const blocks::Q6_K& b, int s, Codes& c) {
  const int h = s / 4;
  const int k = 32 * (s % 4);
  for (int half = 0; half < 2; ++half) {
    c.scale[half] = b.d.value() * static_cast<float>(b.scales[2 * s + half]);
  }
  for (int i = 0; i < 32; ++i) {
    const int low = nibble(b.ql[64 * h + (k + i) % 64], k / 64);
    const int high = (b.qh[32 * h + i] >> (2 * (s % 4))) & 3;
    c.code[i] = offset_code((low | (high << 4)) - 32);
  }
}

template <class Block>
void read_row(const std::uint8_t* row, std::uint32_t first, std::uint32_t count, Codes* out) {
  constexpr std::uint32_t kSubBlocks = Block::kLength / kQ8Length;
  const auto* blocks = reinterpret_cast<const Block*>(row);
  for (std::uint32_t i = 0; i < count; ++i) {
    out[i].minimum = 0;
    out[i].minimum_code[0] = out[i].minimum_code[1] = 0;
    read(blocks[(first + i) / kSubBlocks], static_cast<int>((first + i) % kSubBlocks), out[i]);
  }
}

}  // namespace

CodeForm code_form(ElementType type) {
  switch (type) {
    case ElementType::q4_1:
    case ElementType::q5_1:
    case ElementType::q4_k:
    case ElementType::q5_k:
      return CodeForm::minimum;
    case ElementType::q6_k:
      return CodeForm::half_scales;
    case ElementType::q2_k:
      return CodeForm::half_minima;
    default:
      return CodeForm::signed_codes;
  }
}

void read_codes(ElementType type, const std::uint8_t* row, std::uint32_t first, std::uint32_t count,
                Codes* out) {
  switch (type) {
    case ElementType::q4_0:
      return read_row<blocks::Q4_0>(row, first, count, out);
    case ElementType::q4_1:
      return read_row<blocks::Q4_1>(row, first, count, out);
    case ElementType::q5_0:
      return read_row<blocks::Q5_0>(row, first, count, out);
    case ElementType::q5_1:
      return read_row<blocks::Q5_1>(row, first, count, out);
    case ElementType::q8_0:
      return read_row<blocks::Q8_0>(row, first, count, out);
    case ElementType::iq4_nl:
      return read_row<blocks::IQ4_NL>(row, first, count, out);
    case ElementType::iq4_xs:
      return read_row<blocks::IQ4_XS>(row, first, count, out);
    case ElementType::mxfp4:
      return read_row<blocks::MXFP4>(row, first, count, out);
    case ElementType::q2_k:
      return read_row<blocks::Q2_K>(row, first, count, out);
    case ElementType::q3_k:
      return read_row<blocks::Q3_K>(row, first, count, out);
    case ElementType::q4_k:
      return read_row<blocks::Q4_K>(row, first, count, out);
    case ElementType::q5_k:
      return read_row<blocks::Q5_K>(row, first, count, out);
    case ElementType::q6_k:
      return read_row<blocks::Q6_K>(row, first, count, out);
    default:
      throw Error(ErrorCode::unsupported, "no 8-bit product is defined for weights of type " +
                                              std::string(traits(type).name));
  }
}

void dequantize_columns(ElementType type, const std::uint8_t* row, std::uint32_t first,
                        std::uint32_t count, float* out) {
  const auto* blocks = reinterpret_cast<const std::byte*>(row) + row_bytes(type, first);
  dequantize(type, {blocks, row_bytes(type, count)}, {out, count});
}

}  // namespace edgerunner::cpu
