#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "arch/decoder_spec.h"
#include "arch/metadata.h"

namespace edgerunner {

// Divisors of the frequencies that a file brings as tensors, [dimensions / 2] each, or empty.
struct RopeFactors {
  std::vector<float> fixed;       // rope_freqs.weight: Llama 3.1
  std::vector<float> short_ones;  // rope_factors_short.weight: LongRoPE, up to the original context
  std::vector<float> long_ones;   // rope_factors_long.weight: beyond it
};

// Reads base, rotated dimensions and scaling from the metadata and folds them into a RopeSpec.
// Throws Error(unsupported) naming a scaling type that EdgeRunner does not know.
RopeSpec read_rope(const Metadata& metadata, RopeLayout layout, std::uint32_t dimensions,
                   const RopeFactors& factors);

// A RoPE of that base, unscaled. `base_key` is read from the metadata, or `fallback` taken.
RopeSpec read_plain_rope(const Metadata& metadata, std::string_view base_key, double fallback,
                         RopeLayout layout, std::uint32_t dimensions);

// Dimensions of a head that are rotated: rope.dimension_count, or all. Even, at most head_dim.
std::uint32_t rope_dimensions(const Metadata& metadata, std::uint32_t head_dim);

}  // namespace edgerunner
