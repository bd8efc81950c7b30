#pragma once

#include <cstdint>
#include <span>

#include "arch/decoder_spec.h"
#include "arch/metadata.h"

namespace edgerunner {

// Reads base, rotated dimensions and scaling from the metadata and folds them into a RopeSpec.
// `factors`, [dimensions / 2] or empty, divide the frequencies (rope_freqs.weight: Llama 3.1).
// Throws Error(unsupported) naming a scaling type that EdgeRunner does not know.
RopeSpec read_rope(const Metadata& metadata, RopeLayout layout, std::uint32_t dimensions,
                   std::span<const float> factors);

// Dimensions of a head that are rotated: rope.dimension_count, or all. Even, at most head_dim.
std::uint32_t rope_dimensions(const Metadata& metadata, std::uint32_t head_dim);

}  // namespace edgerunner
