#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "tensor/element_type.h"

namespace edgerunner {

// Quantises to Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_XS or IQ4_NL: codes and scales that make the
// weighted squared error small (quantize_fit.h). `values` are finite, whole blocks; `weights`,
// [values.size()], say what the error of each counts. Returns the first element of a block whose
// scale has no finite f16, or nothing where all went well.
std::optional<std::size_t> quantize_fitted(ElementType type, std::span<const float> values,
                                           std::span<const float> weights, std::byte* blocks);

}  // namespace edgerunner
