#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <span>

#include "edgerunner/error.h"
#include "tensor/blocks.h"
#include "tensor/element_type.h"

namespace edgerunner {

// Every quantised format is the same thing: integer codes, and for each group of consecutive
// elements a scale and perhaps an offset: value(i) = scale(i / group) * code(i) + offset(i /
// group). BlockFormat<type> says how to take a block apart into these:
//   Block          the block's layout (blocks.h)
//   kGroup         elements a group
//   kHasOffset     whether offset() exists
//   codes(b, out)  the codes of all elements, centred: what the scale is multiplied with
//   scale(b, j)    of group j
//   offset(b, j)   of group j
template <ElementType>
struct BlockFormat;

namespace detail {

// The pairing of blocks of 32: element i in the low nibble of byte i, i + 16 in the high one.
template <typename Decode>
void unpack_nibbles(const std::uint8_t* qs, std::int8_t* out, Decode decode) {
  for (int i = 0; i < 16; ++i) {
    out[i] = static_cast<std::int8_t>(decode(qs[i] & 0xF, i));
    out[i + 16] = static_cast<std::int8_t>(decode(qs[i] >> 4, i + 16));
  }
}

inline int bit(const std::uint8_t* bytes, int i) { return (bytes[i / 8] >> (i % 8)) & 1; }

template <typename B>
struct BlockOf32 {
  using Block = B;
  static constexpr int kGroup = 32;
  static constexpr bool kHasOffset = requires(B block) { block.m; };
  static float scale(const B& b, int /*group*/) { return b.d.value(); }
  static float offset(const B& b, int /*group*/) requires(kHasOffset) { return b.m.value(); }
};

}  // namespace detail

template <>
struct BlockFormat<ElementType::q4_0> : detail::BlockOf32<blocks::Q4_0> {
  static void codes(const Block& b, std::span<std::int8_t, 32> out) {
    detail::unpack_nibbles(b.qs.data(), out.data(), [](int q, int) { return q - 8; });
  }
};

template <>
struct BlockFormat<ElementType::q4_1> : detail::BlockOf32<blocks::Q4_1> {
  static void codes(const Block& b, std::span<std::int8_t, 32> out) {
    detail::unpack_nibbles(b.qs.data(), out.data(), [](int q, int) { return q; });
  }
};

template <>
struct BlockFormat<ElementType::q5_0> : detail::BlockOf32<blocks::Q5_0> {
  static void codes(const Block& b, std::span<std::int8_t, 32> out) {
    detail::unpack_nibbles(b.qs.data(), out.data(), [&](int q, int i) {
      return (q | (detail::bit(b.qh.data(), i) << 4)) - 16;
    });
  }
};

template <>
struct BlockFormat<ElementType::q5_1> : detail::BlockOf32<blocks::Q5_1> {
  static void codes(const Block& b, std::span<std::int8_t, 32> out) {
    detail::unpack_nibbles(b.qs.data(), out.data(),
                           [&](int q, int i) { return q | (detail::bit(b.qh.data(), i) << 4); });
  }
};

template <>
struct BlockFormat<ElementType::q8_0> : detail::BlockOf32<blocks::Q8_0> {
  static void codes(const Block& b, std::span<std::int8_t, 32> out) {
    for (int i = 0; i < 32; ++i) out[i] = b.qs[i];
  }
};

template <>
struct BlockFormat<ElementType::iq4_nl> : detail::BlockOf32<blocks::IQ4_NL> {
  static void codes(const Block& b, std::span<std::int8_t, 32> out) {
    detail::unpack_nibbles(b.qs.data(), out.data(),
                           [](int q, int) { return blocks::kIq4Values[q]; });
  }
};

template <>
struct BlockFormat<ElementType::mxfp4> {
  using Block = blocks::MXFP4;
  static constexpr int kGroup = 32;
  static constexpr bool kHasOffset = false;
  static void codes(const Block& b, std::span<std::int8_t, 32> out) {
    detail::unpack_nibbles(b.qs.data(), out.data(),
                           [](int q, int) { return blocks::kMxfp4Values[q]; });
  }
  static float scale(const Block& b, int /*group*/) { return b.half_scale(); }
};

template <>
struct BlockFormat<ElementType::q2_k> {
  using Block = blocks::Q2_K;
  static constexpr int kGroup = 16;
  static constexpr bool kHasOffset = true;
  static void codes(const Block& b, std::span<std::int8_t, 256> out) {
    for (int i = 0; i < 256; ++i) {
      out[i] =
          static_cast<std::int8_t>((b.qs[32 * (i / 128) + i % 32] >> (2 * (i % 128 / 32))) & 3);
    }
  }
  static float scale(const Block& b, int j) {
    return b.d.value() * static_cast<float>(b.scales[j] & 0xF);
  }
  static float offset(const Block& b, int j) {
    return -(b.dmin.value() * static_cast<float>(b.scales[j] >> 4));
  }
};

template <>
struct BlockFormat<ElementType::q3_k> {
  using Block = blocks::Q3_K;
  static constexpr int kGroup = 16;
  static constexpr bool kHasOffset = false;
  static void codes(const Block& b, std::span<std::int8_t, 256> out) {
    for (int i = 0; i < 256; ++i) {
      const int low = (b.qs[32 * (i / 128) + i % 32] >> (2 * (i % 128 / 32))) & 3;
      const int high = (b.hmask[i % 32] >> (i / 32)) & 1;
      out[i] = static_cast<std::int8_t>((low | (high << 2)) - 4);
    }
  }
  static float scale(const Block& b, int j) { return b.d.value() * static_cast<float>(b.scale(j)); }
};

template <>
struct BlockFormat<ElementType::q4_k> {
  using Block = blocks::Q4_K;
  static constexpr int kGroup = 32;
  static constexpr bool kHasOffset = true;
  static void codes(const Block& b, std::span<std::int8_t, 256> out) {
    for (int i = 0; i < 256; ++i) {
      out[i] =
          static_cast<std::int8_t>((b.qs[32 * (i / 64) + i % 32] >> (4 * (i % 64 / 32))) & 0xF);
    }
  }
  static float scale(const Block& b, int j) {
    return b.d.value() * static_cast<float>(b.scales.scale(j));
  }
  static float offset(const Block& b, int j) {
    return -(b.dmin.value() * static_cast<float>(b.scales.minimum(j)));
  }
};

template <>
struct BlockFormat<ElementType::q5_k> {
  using Block = blocks::Q5_K;
  static constexpr int kGroup = 32;
  static constexpr bool kHasOffset = true;
  static void codes(const Block& b, std::span<std::int8_t, 256> out) {
    for (int i = 0; i < 256; ++i) {
      const int low = (b.qs[32 * (i / 64) + i % 32] >> (4 * (i % 64 / 32))) & 0xF;
      const int high = (b.qh[i % 32] >> (i / 32)) & 1;
      out[i] = static_cast<std::int8_t>(low | (high << 4));
    }
  }
  static float scale(const Block& b, int j) {
    return b.d.value() * static_cast<float>(b.scales.scale(j));
  }
  static float offset(const Block& b, int j) {
    return -(b.dmin.value() * static_cast<float>(b.scales.minimum(j)));
  }
};

template <>
struct BlockFormat<ElementType::q6_k> {
  using Block = blocks::Q6_K;
  static constexpr int kGroup = 16;
  static constexpr bool kHasOffset = false;
  static void codes(const Block& b, std::span<std::int8_t, 256> out) {
    for (int i = 0; i < 256; ++i) {
      const int half = i / 128;
      const int k = i % 128;
      const int low = (b.ql[64 * half + k % 64] >> (4 * (k / 64))) & 0xF;
      const int high = (b.qh[32 * half + k % 32] >> (2 * (k / 32))) & 3;
      out[i] = static_cast<std::int8_t>((low | (high << 4)) - 32);
    }
  }
  static float scale(const Block& b, int j) {
    return b.d.value() * static_cast<float>(b.scales[j]);
  }
};

template <>
struct BlockFormat<ElementType::iq4_xs> {
  using Block = blocks::IQ4_XS;
  static constexpr int kGroup = 32;
  static constexpr bool kHasOffset = false;
  static void codes(const Block& b, std::span<std::int8_t, 256> out) {
    for (int i = 0; i < 256; ++i) {
      const int nibble = (b.qs[16 * (i / 32) + i % 16] >> (4 * (i % 32 / 16))) & 0xF;
      out[i] = blocks::kIq4Values[nibble];
    }
  }
  static float scale(const Block& b, int j) { return b.d.value() * static_cast<float>(b.scale(j)); }
};

// Calls visit(BlockFormat<type>{}) for a quantised type that EdgeRunner computes with. Throws
// Error(unsupported) for every other.
template <typename Visit>
decltype(auto) visit_block_format(ElementType type, Visit&& visit) {
  switch (type) {
    case ElementType::q4_0:
      return visit(BlockFormat<ElementType::q4_0>{});
    case ElementType::q4_1:
      return visit(BlockFormat<ElementType::q4_1>{});
    case ElementType::q5_0:
      return visit(BlockFormat<ElementType::q5_0>{});
    case ElementType::q5_1:
      return visit(BlockFormat<ElementType::q5_1>{});
    case ElementType::q8_0:
      return visit(BlockFormat<ElementType::q8_0>{});
    case ElementType::q2_k:
      return visit(BlockFormat<ElementType::q2_k>{});
    case ElementType::q3_k:
      return visit(BlockFormat<ElementType::q3_k>{});
    case ElementType::q4_k:
      return visit(BlockFormat<ElementType::q4_k>{});
    case ElementType::q5_k:
      return visit(BlockFormat<ElementType::q5_k>{});
    case ElementType::q6_k:
      return visit(BlockFormat<ElementType::q6_k>{});
    case ElementType::iq4_nl:
      return visit(BlockFormat<ElementType::iq4_nl>{});
    case ElementType::iq4_xs:
      return visit(BlockFormat<ElementType::iq4_xs>{});
    case ElementType::mxfp4:
      return visit(BlockFormat<ElementType::mxfp4>{});
    default:
      throw Error(ErrorCode::unsupported,
                  fmt::format("{} is not a quantised type that EdgeRunner computes with",
                              traits(type).name));
  }
}

}  // namespace edgerunner
