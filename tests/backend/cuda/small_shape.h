#pragma once

#include <cstdint>

#include "support/random_decoder.h"

namespace edgerunner::test {

// Of Q8_0, which every fast path takes, and of widths that no tile divides.
inline DecoderShape small_shape(std::uint32_t vocab) {
  return {.layers = 3,
          .heads = 6,
          .kv_heads = 2,
          .head_dim = 64,
          .dim = 160,
          .ffn_dim = 416,
          .vocab = vocab,
          .type = ElementType::q8_0};
}

}  // namespace edgerunner::test
