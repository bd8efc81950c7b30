#pragma once

// Products of bfloat16 activations with weights of 16 bits, by tiles.

#include <cstdint>

#include "backend/cpu/kernels/amx/bf16_few.h"
#include "backend/cpu/kernels/amx/bf16_many.h"

namespace edgerunner::cpu {
namespace {

inline void multiply_bf16_tiles(const RawProduct& product, std::uint32_t row_begin,
                                std::uint32_t row_end, const Scratch& scratch) {
  if (product.tokens <= kDirectTokens) {
    if (product.type == ElementType::f16) {
      return Bf16Few<true>(product, scratch).run(row_begin, row_end);
    }
    return Bf16Few<false>(product, scratch).run(row_begin, row_end);
  }
  const Tiles tiles;
  // Groups of nearly equal sizes, so that each fills a tile at least.
  const std::uint32_t groups = (product.tokens + kGroupTokens - 1) / kGroupTokens;
  std::uint32_t first = 0;
  for (std::uint32_t i = 0; i < groups; ++i) {
    const auto end = static_cast<std::uint32_t>(std::uint64_t{product.tokens} * (i + 1) / groups);
    Bf16Many(product, first, end - first, scratch).run(product, row_begin, row_end);
    first = end;
  }
}

}  // namespace
}  // namespace edgerunner::cpu
