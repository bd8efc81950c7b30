#include "tensor/dequantize.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "base/half.h"
#include "edgerunner/error.h"
#include "tensor/block_format.h"

namespace edgerunner {
namespace {

template <typename Format>
void dequantize_blocks(const std::byte* bytes, std::span<float> out) {
  using Block = typename Format::Block;
  std::array<std::int8_t, Block::kLength> codes;
  for (std::size_t start = 0; start < out.size(); start += Block::kLength) {
    Block block;
    std::memcpy(&block, bytes, sizeof(block));
    bytes += sizeof(block);
    Format::codes(block, codes);
    for (int group = 0; group < Block::kLength / Format::kGroup; ++group) {
      const float scale = Format::scale(block, group);
      float* const values = out.data() + start + group * Format::kGroup;
      const std::int8_t* const group_codes = codes.data() + group * Format::kGroup;
      if constexpr (Format::kHasOffset) {
        const float offset = Format::offset(block, group);
        for (int i = 0; i < Format::kGroup; ++i) {
          values[i] = scale * static_cast<float>(group_codes[i]) + offset;
        }
      } else {
        for (int i = 0; i < Format::kGroup; ++i) {
          values[i] = scale * static_cast<float>(group_codes[i]);
        }
      }
    }
  }
}

template <float (*widen)(std::uint16_t)>
void widen_all(const std::byte* bytes, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, bytes + i * sizeof(bits), sizeof(bits));
    out[i] = widen(bits);
  }
}

}  // namespace

void dequantize(ElementType type, std::span<const std::byte> blocks, std::span<float> out) {
  const std::size_t needed = row_bytes(type, out.size());
  if (blocks.size() < needed) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} elements of {} take {} bytes, but there are {}", out.size(),
                            traits(type).name, needed, blocks.size()));
  }
  switch (type) {
    case ElementType::f32:
      if (needed != 0) std::memcpy(out.data(), blocks.data(), needed);
      return;
    case ElementType::f16:
      return widen_all<f16_to_f32>(blocks.data(), out);
    case ElementType::bf16:
      return widen_all<bf16_to_f32>(blocks.data(), out);
    default:
      visit_block_format(
          type, [&]<typename Format>(Format) { dequantize_blocks<Format>(blocks.data(), out); });
  }
}

}  // namespace edgerunner
