#pragma once

#include <cstddef>
#include <span>

#include "tensor/element_type.h"

namespace edgerunner {

// The inverse of dequantize() for F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0 and Q5_1, byte-identical
// with the reference quantiser of the field, and for Q2_K to Q6_K, IQ4_NL and IQ4_XS, whose codes
// and scales are chosen to make the squared error small. `values.size()` must be a multiple of the
// block length and `blocks` hold exactly that many blocks, at any address.
//
// `importance`, [values.size()] or empty, says what the squared error of each value counts, not
// negative. Given it, Q4_0, Q4_1, Q5_0 and Q5_1 are fitted too, in place of byte-identical; F32,
// F16, BF16 and Q8_0 ignore it.
//
// F16 and BF16 round to nearest even; NaN stays NaN, and what is too large for F16 becomes
// infinity. The block formats have no code for NaN and infinity, and their f16 scale no room for
// every magnitude: for such values quantize() throws Error(invalid_argument), which names the first
// of them. Values too small for the f16 scale become zero. Throws Error(unsupported) for another
// type.
void quantize(ElementType type, std::span<const float> values, std::span<std::byte> blocks,
              std::span<const float> importance = {});

// Whether quantize() writes the type.
bool can_quantize(ElementType type);

}  // namespace edgerunner
