#pragma once

#include <cstdint>

#include "base/half.h"
#include "tensor/blocks.h"

namespace edgerunner {

// Rounds a block's scale or minimum; false where the value has no finite f16.
inline bool store_f16(blocks::F16& out, float value) {
  const std::uint16_t bits = f32_to_f16(value);
  out.set_bits(bits);
  return (bits & 0x7C00) != 0x7C00;
}

}  // namespace edgerunner
