#include "tensor/quantize_k.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tensor/blocks.h"
#include "tensor/quantize_fit.h"
#include "tensor/store_f16.h"

namespace edgerunner {
namespace {

constexpr int kLength = 256;
using Part = std::span<const float>;

float inverse_of(float scale) { return scale == 0 ? 0.0F : 1.0F / scale; }

// ---- Symmetric formats: one scale d for the block times an integer a sub-block.

// Chooses d and the integers, from kLowest to -kLowest - 1, for sub-blocks of kLength / kParts.
// Returns false where d has no finite f16.
template <class Codes, int kParts, int kLowest>
bool scale_parts(Part x, Part weight, blocks::F16& d, std::array<int, kParts>& scales) {
  constexpr std::size_t kPart = kLength / kParts;
  const auto part = [&](int j) {
    return SubBlock{x.subspan(j * kPart, kPart), weight.subspan(j * kPart, kPart)};
  };
  std::array<float, kParts> wanted;
  float extreme = 0;
  for (int j = 0; j < kParts; ++j) {
    wanted[j] = fit_symmetric<Codes>(part(j)).scale;
    if (std::abs(wanted[j]) > std::abs(extreme)) extreme = wanted[j];
  }
  scales.fill(0);
  float step = extreme / static_cast<float>(kLowest);
  if (!store_f16(d, step)) return false;
  // Integers for d, then the d that suits these integers and their codes best.
  for (int round = 0; round < 2; ++round) {
    step = d.value();
    double xv = 0;
    double vv = 0;
    for (int j = 0; j < kParts; ++j) {
      const int middle = static_cast<int>(std::lrintf(wanted[j] * inverse_of(step)));
      float least = -1;
      for (int scale = middle - 1; scale <= middle + 1; ++scale) {
        const int held = std::clamp(scale, kLowest, -kLowest - 1);
        const float error = symmetric_error<Codes>(part(j), step * static_cast<float>(held));
        if (least < 0 || error < least) {
          least = error;
          scales[j] = held;
        }
      }
      const SubBlock block = part(j);
      const float inverse = inverse_of(step * static_cast<float>(scales[j]));
      for (std::size_t i = 0; i < kPart; ++i) {
        const double v = static_cast<double>(Codes::nearest(block.x[i] * inverse)) * scales[j];
        xv += static_cast<double>(block.weight[i]) * static_cast<double>(block.x[i]) * v;
        vv += static_cast<double>(block.weight[i]) * v * v;
      }
    }
    if (round == 0 && vv > 0 && !store_f16(d, static_cast<float>(xv / vv))) return false;
  }
  return true;
}

template <class Codes, int kParts>
std::array<std::uint8_t, kLength> codes_of(Part x, float d, const std::array<int, kParts>& scales) {
  std::array<std::uint8_t, kLength> codes;
  for (int i = 0; i < kLength; ++i) {
    const float inverse = inverse_of(d * static_cast<float>(scales[i / (kLength / kParts)]));
    codes[i] = static_cast<std::uint8_t>(Codes::code(Codes::nearest(x[i] * inverse)));
  }
  return codes;
}

// The codes of IQ4_NL and IQ4_XS.
struct Iq4Codes {
  static constexpr float kExtreme = blocks::kIq4Values[0];
  static float nearest(float x) {
    float value = blocks::kIq4Values[0];
    for (int i = 0; i < 15; ++i) {
      const auto low = static_cast<float>(blocks::kIq4Values[i]);
      const auto high = static_cast<float>(blocks::kIq4Values[i + 1]);
      value += x > 0.5F * (low + high) ? high - low : 0.0F;
    }
    return value;
  }
  static int code(float value) {
    return static_cast<int>(
        std::find(blocks::kIq4Values.begin(), blocks::kIq4Values.end(), static_cast<int>(value)) -
        blocks::kIq4Values.begin());
  }
};

using SixBits = IntegerCodes<-32, 31>;
using ThreeBits = IntegerCodes<-4, 3>;

bool encode(Part x, Part weight, blocks::Q6_K& block) {
  std::array<int, 16> scales;
  if (!scale_parts<SixBits, 16, -128>(x, weight, block.d, scales)) return false;
  const auto codes = codes_of<SixBits, 16>(x, block.d.value(), scales);
  block.ql = {};
  block.qh = {};
  for (int j = 0; j < 16; ++j) block.scales[j] = static_cast<std::int8_t>(scales[j]);
  for (int i = 0; i < kLength; ++i) {
    const int h = i / 128;
    const int k = i % 128;
    block.ql[64 * h + k % 64] |= static_cast<std::uint8_t>((codes[i] & 0xF) << (4 * (k / 64)));
    block.qh[32 * h + k % 32] |= static_cast<std::uint8_t>((codes[i] >> 4) << (2 * (k / 32)));
  }
  return true;
}

bool encode(Part x, Part weight, blocks::Q3_K& block) {
  std::array<int, 16> scales;
  if (!scale_parts<ThreeBits, 16, -32>(x, weight, block.d, scales)) return false;
  const auto codes = codes_of<ThreeBits, 16>(x, block.d.value(), scales);
  block.hmask = {};
  block.qs = {};
  block.scales = {};
  for (int j = 0; j < 16; ++j) {
    const int stored = scales[j] + 32;
    block.scales[j % 8] |= static_cast<std::uint8_t>((stored & 0xF) << (4 * (j / 8)));
    block.scales[8 + j % 4] |= static_cast<std::uint8_t>((stored >> 4) << (2 * (j / 4)));
  }
  for (int i = 0; i < kLength; ++i) {
    block.qs[32 * (i / 128) + i % 32] |=
        static_cast<std::uint8_t>((codes[i] & 3) << (2 * (i % 128 / 32)));
    block.hmask[i % 32] |= static_cast<std::uint8_t>((codes[i] >> 2) << (i / 32));
  }
  return true;
}

bool encode(Part x, Part weight, blocks::IQ4_XS& block) {
  std::array<int, 8> scales;
  if (!scale_parts<Iq4Codes, 8, -32>(x, weight, block.d, scales)) return false;
  const auto codes = codes_of<Iq4Codes, 8>(x, block.d.value(), scales);
  block.scales_h = {};
  block.scales_l = {};
  block.qs = {};
  for (int j = 0; j < 8; ++j) {
    const int stored = scales[j] + 32;
    block.scales_l[j / 2] |= static_cast<std::uint8_t>((stored & 0xF) << (4 * (j % 2)));
    block.scales_h[j / 4] |= static_cast<std::uint8_t>((stored >> 4) << (2 * (j % 4)));
  }
  for (int i = 0; i < kLength; ++i) {
    block.qs[16 * (i / 32) + i % 16] |= static_cast<std::uint8_t>(codes[i] << (4 * (i % 32 / 16)));
  }
  return true;
}

bool encode(Part x, Part weight, blocks::IQ4_NL& block) {
  if (!store_f16(block.d, fit_symmetric<Iq4Codes>({x, weight}).scale)) return false;
  const float inverse = inverse_of(block.d.value());
  block.qs = {};
  for (int i = 0; i < 32; ++i) {
    const auto code = static_cast<std::uint8_t>(Iq4Codes::code(Iq4Codes::nearest(x[i] * inverse)));
    block.qs[i % 16] |= static_cast<std::uint8_t>(code << (4 * (i / 16)));
  }
  return true;
}

// ---- Formats with minima: d times an integer scale, dmin times an integer minimum a sub-block.

template <int kParts>
struct AffineParts {
  std::array<int, kParts> scale;
  std::array<int, kParts> minimum;
  std::array<std::uint8_t, kLength> codes;
};

// Chooses d, dmin, the integers from 0 to `most`, and codes from 0 to `last`. Returns false where d
// or dmin has no finite f16.
template <int kParts>
bool fit_parts(Part x, Part weight, float last, int most, blocks::F16& d, blocks::F16& dmin,
               AffineParts<kParts>& parts) {
  constexpr std::size_t kPart = kLength / kParts;
  std::array<SubBlock, kParts> blocks;
  std::array<AffineFit, kParts> wanted;
  AffineFit largest;
  for (int j = 0; j < kParts; ++j) {
    blocks[j] = {x.subspan(j * kPart, kPart), weight.subspan(j * kPart, kPart)};
    wanted[j] = fit_affine(blocks[j], last);
    largest.scale = std::max(largest.scale, wanted[j].scale);
    largest.minimum = std::max(largest.minimum, wanted[j].minimum);
  }
  if (!store_f16(d, largest.scale / static_cast<float>(most)) ||
      !store_f16(dmin, largest.minimum / static_cast<float>(most))) {
    return false;
  }
  for (int round = 0; round < 2; ++round) {
    const AffineFit unit{d.value(), dmin.value()};
    // Normal equations of (d, dmin) over the block, given the integers and codes.
    double aa = 0, ab = 0, bb = 0, xa = 0, xb = 0;
    for (int j = 0; j < kParts; ++j) {
      const int scale = static_cast<int>(std::lrintf(wanted[j].scale * inverse_of(unit.scale)));
      const int minimum =
          static_cast<int>(std::lrintf(wanted[j].minimum * inverse_of(unit.minimum)));
      float least = -1;
      for (int s = scale - 1; s <= scale + 1; ++s) {
        for (int m = minimum - 1; m <= minimum + 1; ++m) {
          const int held_s = std::clamp(s, 0, most);
          const int held_m = std::clamp(m, 0, most);
          const AffineFit fit{unit.scale * static_cast<float>(held_s),
                              unit.minimum * static_cast<float>(held_m)};
          const float error = affine_error(blocks[j], fit, last);
          if (least < 0 || error < least) {
            least = error;
            parts.scale[j] = held_s;
            parts.minimum[j] = held_m;
          }
        }
      }
      const AffineFit fit{unit.scale * static_cast<float>(parts.scale[j]),
                          unit.minimum * static_cast<float>(parts.minimum[j])};
      const float inverse = affine_inverse(fit);
      for (std::size_t i = 0; i < kPart; ++i) {
        const float code = affine_code(blocks[j].x[i], fit, inverse, last);
        parts.codes[j * kPart + i] = static_cast<std::uint8_t>(code);
        const double w = static_cast<double>(blocks[j].weight[i]);
        const double value = static_cast<double>(blocks[j].x[i]);
        const double a = parts.scale[j] * static_cast<double>(code);
        const double b = -parts.minimum[j];
        aa += w * a * a;
        ab += w * a * b;
        bb += w * b * b;
        xa += w * value * a;
        xb += w * value * b;
      }
    }
    const double determinant = aa * bb - ab * ab;
    if (round == 1 || !(determinant > 0)) break;
    const double better_d = (xa * bb - xb * ab) / determinant;
    const double better_min = (xb * aa - xa * ab) / determinant;
    if (!(better_d > 0) || !(better_min > 0)) break;
    if (!store_f16(d, static_cast<float>(better_d)) ||
        !store_f16(dmin, static_cast<float>(better_min))) {
      return false;
    }
  }
  return true;
}

blocks::PackedScales pack(const std::array<int, 8>& scales, const std::array<int, 8>& minima) {
  blocks::PackedScales packed{};
  for (int j = 0; j < 4; ++j) {
    packed.bytes[j] = static_cast<std::uint8_t>(scales[j] | ((scales[j + 4] >> 4) << 6));
    packed.bytes[j + 4] = static_cast<std::uint8_t>(minima[j] | ((minima[j + 4] >> 4) << 6));
    packed.bytes[j + 8] =
        static_cast<std::uint8_t>((scales[j + 4] & 0xF) | ((minima[j + 4] & 0xF) << 4));
  }
  return packed;
}

// The low four bits of Q4_K's and Q5_K's codes.
void pack_nibbles(const std::array<std::uint8_t, kLength>& codes,
                  std::array<std::uint8_t, 128>& qs) {
  qs = {};
  for (int i = 0; i < kLength; ++i) {
    qs[32 * (i / 64) + i % 32] |=
        static_cast<std::uint8_t>((codes[i] & 0xF) << (4 * (i % 64 / 32)));
  }
}

bool encode(Part x, Part weight, blocks::Q4_K& block) {
  AffineParts<8> parts;
  if (!fit_parts(x, weight, 15, 63, block.d, block.dmin, parts)) return false;
  block.scales = pack(parts.scale, parts.minimum);
  pack_nibbles(parts.codes, block.qs);
  return true;
}

bool encode(Part x, Part weight, blocks::Q5_K& block) {
  AffineParts<8> parts;
  if (!fit_parts(x, weight, 31, 63, block.d, block.dmin, parts)) return false;
  block.scales = pack(parts.scale, parts.minimum);
  pack_nibbles(parts.codes, block.qs);
  block.qh = {};
  for (int i = 0; i < kLength; ++i) {
    block.qh[i % 32] |= static_cast<std::uint8_t>((parts.codes[i] >> 4) << (i / 32));
  }
  return true;
}

bool encode(Part x, Part weight, blocks::Q2_K& block) {
  AffineParts<16> parts;
  if (!fit_parts(x, weight, 3, 15, block.d, block.dmin, parts)) return false;
  block.qs = {};
  for (int j = 0; j < 16; ++j) {
    block.scales[j] = static_cast<std::uint8_t>(parts.scale[j] | (parts.minimum[j] << 4));
  }
  for (int i = 0; i < kLength; ++i) {
    block.qs[32 * (i / 128) + i % 32] |=
        static_cast<std::uint8_t>(parts.codes[i] << (2 * (i % 128 / 32)));
  }
  return true;
}

template <class Block>
std::optional<std::size_t> encode_all(Part values, Part weights, std::byte* out) {
  for (std::size_t start = 0; start < values.size();
       start += Block::kLength, out += sizeof(Block)) {
    Block block;
    if (!encode(values.subspan(start, Block::kLength), weights.subspan(start, Block::kLength),
                block)) {
      return start;
    }
    std::memcpy(out, &block, sizeof(block));
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::size_t> quantize_fitted(ElementType type, std::span<const float> values,
                                           std::span<const float> weights, std::byte* blocks) {
  switch (type) {
    case ElementType::q2_k:
      return encode_all<blocks::Q2_K>(values, weights, blocks);
    case ElementType::q3_k:
      return encode_all<blocks::Q3_K>(values, weights, blocks);
    case ElementType::q4_k:
      return encode_all<blocks::Q4_K>(values, weights, blocks);
    case ElementType::q5_k:
      return encode_all<blocks::Q5_K>(values, weights, blocks);
    case ElementType::q6_k:
      return encode_all<blocks::Q6_K>(values, weights, blocks);
    case ElementType::iq4_xs:
      return encode_all<blocks::IQ4_XS>(values, weights, blocks);
    default:
      return encode_all<blocks::IQ4_NL>(values, weights, blocks);
  }
}

}  // namespace edgerunner
