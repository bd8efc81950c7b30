#pragma once

#include <cstddef>
#include <span>

#include "tensor/element_type.h"

namespace edgerunner {

// Writes the values of `out.size()` elements, stored in `blocks`, to `out`. Bit-exact with the
// format's published definition: one rounding a product and a sum, never fused.
// `out.size()` must be a multiple of the block length and `blocks` hold at least that many blocks.
// `blocks` needs no alignment. Throws Error(unsupported) for a type that isn't `supported`.
void dequantize(ElementType type, std::span<const std::byte> blocks, std::span<float> out);

}  // namespace edgerunner
