#include "tensor/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/half.h"
#include "edgerunner/error.h"
#include "tensor/blocks.h"
#include "tensor/quantize_fit.h"
#include "tensor/quantize_k.h"
#include "tensor/store_f16.h"

namespace edgerunner {
namespace {

constexpr int kLength = 32;  // of every block format here
using Values = std::span<const float, kLength>;
using Codes = std::array<std::uint8_t, kLength>;

// 1/scale, or 0 where that is not finite: the scale is then zero as f16, and so is every value.
float reciprocal(float scale) {
  const float inverse = 1.0F / scale;
  return std::isfinite(inverse) ? inverse : 0.0F;
}

// The first of the elements with the largest magnitude, sign and all.
float extreme(std::span<const float> x) {
  return *std::max_element(x.begin(), x.end(),
                           [](float a, float b) { return std::abs(a) < std::abs(b); });
}

// Truncates after the offset of a half has been added; codes beyond the last are cut off.
std::uint8_t to_code(float shifted, int last) {
  return static_cast<std::uint8_t>(std::min(static_cast<int>(shifted), last));
}

// Symmetric codes 0 to 2 * zero - 1 about `zero`: the extreme gets code 0 exactly. The sum is
// rounded once, from double, which is what a fused multiply-add gives.
Codes encode_about_zero(Values x, float scale, int zero) {
  const double inverse = reciprocal(scale);
  Codes codes;
  for (int i = 0; i < kLength; ++i) {
    const double shifted = static_cast<double>(x[i]) * inverse + (zero + 0.5);
    codes[i] = to_code(static_cast<float>(shifted), 2 * zero - 1);
  }
  return codes;
}

struct Range {
  float scale;
  float minimum;
};

// Codes 0 to `last` stand for the values from the block's minimum to its maximum.
Range range_of(Values x, int last) {
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  return {(*high - *low) / static_cast<float>(last), *low};
}

Codes encode_range(Values x, Range range, int last) {
  const float inverse = reciprocal(range.scale);
  Codes codes;
  for (int i = 0; i < kLength; ++i) {
    codes[i] = to_code((x[i] - range.minimum) * inverse + 0.5F, last);
  }
  return codes;
}

template <typename Block>
void pack_nibbles(const Codes& codes, Block& block) {
  for (int i = 0; i < kLength / 2; ++i) {
    block.qs[i] = static_cast<std::uint8_t>((codes[i] & 0xF) | ((codes[i + 16] & 0xF) << 4));
  }
}

template <typename Block>
void pack_fifth_bits(const Codes& codes, Block& block) {
  block.qh = {};
  for (int i = 0; i < kLength; ++i) {
    block.qh[i / 8] |= static_cast<std::uint8_t>((codes[i] >> 4) << (i % 8));
  }
}

// encode(x, block) returns false, and leaves the block unfinished, where its scale or minimum
// doesn't fit.

bool encode(Values x, blocks::Q8_0& block) {
  const float scale = std::abs(extreme(x)) / 127.0F;
  if (!store_f16(block.d, scale)) return false;
  const float inverse = reciprocal(scale);
  for (int i = 0; i < kLength; ++i) {
    block.qs[i] = static_cast<std::int8_t>(std::round(x[i] * inverse));  // halves away from zero
  }
  return true;
}

bool encode(Values x, blocks::Q4_0& block) {
  const float scale = extreme(x) / -8.0F;
  if (!store_f16(block.d, scale)) return false;
  pack_nibbles(encode_about_zero(x, scale, 8), block);
  return true;
}

bool encode(Values x, blocks::Q5_0& block) {
  const float scale = extreme(x) / -16.0F;
  if (!store_f16(block.d, scale)) return false;
  const Codes codes = encode_about_zero(x, scale, 16);
  pack_nibbles(codes, block);
  pack_fifth_bits(codes, block);
  return true;
}

bool encode(Values x, blocks::Q4_1& block) {
  const Range range = range_of(x, 15);
  if (!store_f16(block.d, range.scale) || !store_f16(block.m, range.minimum)) return false;
  pack_nibbles(encode_range(x, range, 15), block);
  return true;
}

bool encode(Values x, blocks::Q5_1& block) {
  const Range range = range_of(x, 31);
  if (!store_f16(block.d, range.scale) || !store_f16(block.m, range.minimum)) return false;
  const Codes codes = encode_range(x, range, 31);
  pack_nibbles(codes, block);
  pack_fifth_bits(codes, block);
  return true;
}

// encode(x, weight, block): the same formats with the scale and minimum that make the weighted
// squared error smallest, in place of those that the extremes dictate.

template <int kZero>
bool fit_about_zero(Values x, Values weight, blocks::F16& d, Codes& codes) {
  using Symmetric = IntegerCodes<-kZero, kZero - 1>;
  if (!store_f16(d, fit_symmetric<Symmetric>({x, weight}).scale)) return false;
  const float inverse = reciprocal(d.value());
  for (int i = 0; i < kLength; ++i) {
    codes[i] = static_cast<std::uint8_t>(Symmetric::code(Symmetric::nearest(x[i] * inverse)));
  }
  return true;
}

bool fit_range(Values x, Values weight, int last, blocks::F16& d, blocks::F16& m, Codes& codes) {
  const auto highest = static_cast<float>(last);
  const AffineFit fit = fit_affine<Minimum::any>({x, weight}, highest);
  if (!store_f16(d, fit.scale) || !store_f16(m, -fit.minimum)) return false;
  const AffineFit stored{d.value(), -m.value()};
  for (int i = 0; i < kLength; ++i) {
    codes[i] =
        static_cast<std::uint8_t>(affine_code(x[i], stored, affine_inverse(stored), highest));
  }
  return true;
}

bool encode(Values x, Values weight, blocks::Q4_0& block) {
  Codes codes;
  if (!fit_about_zero<8>(x, weight, block.d, codes)) return false;
  pack_nibbles(codes, block);
  return true;
}

bool encode(Values x, Values weight, blocks::Q5_0& block) {
  Codes codes;
  if (!fit_about_zero<16>(x, weight, block.d, codes)) return false;
  pack_nibbles(codes, block);
  pack_fifth_bits(codes, block);
  return true;
}

bool encode(Values x, Values weight, blocks::Q4_1& block) {
  Codes codes;
  if (!fit_range(x, weight, 15, block.d, block.m, codes)) return false;
  pack_nibbles(codes, block);
  return true;
}

bool encode(Values x, Values weight, blocks::Q5_1& block) {
  Codes codes;
  if (!fit_range(x, weight, 31, block.d, block.m, codes)) return false;
  pack_nibbles(codes, block);
  pack_fifth_bits(codes, block);
  return true;
}

void require_finite(ElementType type, std::span<const float> values) {
  const auto bad = std::find_if_not(values.begin(), values.end(),
                                    [](float value) { return std::isfinite(value); });
  if (bad == values.end()) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("element {} is {}, which {} can't hold; keep this tensor as F32",
                          bad - values.begin(), *bad, traits(type).name));
}

[[noreturn]] void refuse_block(ElementType type, std::span<const float> values, std::size_t start) {
  const std::size_t length = traits(type).block_length;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("elements {} to {} reach {}, too much for the 16-bit scale of {}; "
                          "keep this tensor as F32",
                          start, start + length - 1, extreme(values.subspan(start, length)),
                          traits(type).name));
}

template <typename Block>
void encode_blocks(ElementType type, std::span<const float> values,
                   std::span<const float> importance, std::byte* out) {
  require_finite(type, values);
  for (std::size_t start = 0; start < values.size(); start += kLength) {
    const Values x = values.subspan(start).first<kLength>();
    Block block;
    bool fits;
    if constexpr (requires(Values v) { encode(v, v, block); }) {
      fits = importance.empty() ? encode(x, block)
                                : encode(x, importance.subspan(start).first<kLength>(), block);
    } else {
      fits = encode(x, block);
    }
    if (!fits) refuse_block(type, values, start);
    std::memcpy(out, &block, sizeof(block));
    out += sizeof(block);
  }
}

void encode_fitted(ElementType type, std::span<const float> values,
                   std::span<const float> importance, std::byte* out) {
  require_finite(type, values);
  std::vector<float> equal;
  if (importance.empty()) {
    equal.assign(values.size(), 1.0F);
    importance = equal;
  }
  if (const auto bad = quantize_fitted(type, values, importance, out)) {
    refuse_block(type, values, *bad);
  }
}

template <std::uint16_t (*narrow)(float)>
void narrow_all(std::span<const float> values, std::byte* out) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t bits = narrow(values[i]);
    std::memcpy(out + i * sizeof(bits), &bits, sizeof(bits));
  }
}

}  // namespace

bool can_quantize(ElementType type) { return traits(type).supported && type != ElementType::mxfp4; }

void quantize(ElementType type, std::span<const float> values, std::span<std::byte> blocks,
              std::span<const float> importance) {
  const std::size_t needed = row_bytes(type, values.size());
  if (blocks.size() != needed) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} elements of {} take {} bytes, but there are {}", values.size(),
                            traits(type).name, needed, blocks.size()));
  }
  std::byte* const out = blocks.data();
  switch (type) {
    case ElementType::f32:
      if (needed != 0) std::memcpy(out, values.data(), needed);
      return;
    case ElementType::f16:
      return narrow_all<f32_to_f16>(values, out);
    case ElementType::bf16:
      return narrow_all<f32_to_bf16>(values, out);
    case ElementType::q8_0:
      return encode_blocks<blocks::Q8_0>(type, values, importance, out);
    case ElementType::q4_0:
      return encode_blocks<blocks::Q4_0>(type, values, importance, out);
    case ElementType::q4_1:
      return encode_blocks<blocks::Q4_1>(type, values, importance, out);
    case ElementType::q5_0:
      return encode_blocks<blocks::Q5_0>(type, values, importance, out);
    case ElementType::q5_1:
      return encode_blocks<blocks::Q5_1>(type, values, importance, out);
    case ElementType::q2_k:
    case ElementType::q3_k:
    case ElementType::q4_k:
    case ElementType::q5_k:
    case ElementType::q6_k:
    case ElementType::iq4_nl:
    case ElementType::iq4_xs:
      return encode_fitted(type, values, importance, out);
    default:
      throw Error(ErrorCode::unsupported,
                  fmt::format("EdgeRunner can't quantise to {}; it can to F32, F16, BF16, Q8_0, "
                              "Q4_0, Q4_1, Q5_0, Q5_1, Q2_K to Q6_K, IQ4_NL and IQ4_XS",
                              traits(type).name));
  }
}

}  // namespace edgerunner
