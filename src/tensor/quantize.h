#pragma once

#include <cstddef>
#include <span>

#include "tensor/element_type.h"

namespace edgerunner {

// The inverse of dequantize() for F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0 and Q5_1: byte-identical
// with the reference quantiser of the field. Throws Error(unsupported) for another type.
void quantize(ElementType type, std::span<const float> values, std::span<std::byte> blocks);

}  // namespace edgerunner
