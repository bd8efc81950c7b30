#include "arch/rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>

namespace edgerunner {
namespace {

struct Yarn {
  double base;
  double dimensions;
  double original_context;
  double factor;
  double beta_fast;
  double beta_slow;

  // The dimension whose frequency turns `rotations` times over the original context.
  double correction_dimension(double rotations) const {
    return dimensions * std::log(original_context / (rotations * 2 * std::numbers::pi)) /
           (2 * std::log(base));
  }

  // Peng et al. 2023, "YaRN", section 3.2: pairs that turn often keep their frequency, pairs
  // that turn less than once are interpolated, a ramp lies between.
  double scaled(double frequency, double pair) const {
    const double low = std::max(0.0, std::floor(correction_dimension(beta_fast)));
    const double high = std::min(dimensions - 1, std::ceil(correction_dimension(beta_slow)));
    const double ramp = std::clamp((pair - low) / std::max(0.001, high - low), 0.0, 1.0);
    return frequency / factor * ramp + frequency * (1 - ramp);
  }
};

double positive(const Metadata& metadata, std::string_view key, double fallback) {
  const double value = metadata.find_float(key).value_or(fallback);
  if (!(value > 0)) metadata.refuse(key, fmt::format("is {}, but must be positive", value));
  return value;
}

}  // namespace

std::uint32_t rope_dimensions(const Metadata& metadata, std::uint32_t head_dim) {
  const std::uint32_t dimensions = metadata.find_uint("rope.dimension_count").value_or(head_dim);
  if (dimensions == 0 || dimensions % 2 != 0 || dimensions > head_dim) {
    metadata.refuse("rope.dimension_count",
                    fmt::format("is {}, but must be even and at most the head's {} dimensions",
                                dimensions, head_dim));
  }
  return dimensions;
}

RopeSpec read_rope(const Metadata& metadata, RopeLayout layout, std::uint32_t dimensions,
                   std::span<const float> factors) {
  const double base = positive(metadata, "rope.freq_base", 10000.0);
  const std::string_view scaling = metadata.find_string("rope.scaling.type").value_or("none");
  const bool linear = scaling == "linear";
  const bool yarn = scaling == "yarn";
  if (!linear && !yarn && scaling != "none") {
    metadata.unsupported(fmt::format("RoPE scaling type '{}' is not supported", scaling));
  }
  const double factor = linear || yarn ? positive(metadata, "rope.scaling.factor", 1.0) : 1.0;

  RopeSpec rope;
  rope.layout = layout;
  rope.inverse_frequencies.resize(dimensions / 2);
  for (std::size_t pair = 0; pair < rope.inverse_frequencies.size(); ++pair) {
    rope.inverse_frequencies[pair] =
        std::pow(base, -2.0 * static_cast<double>(pair) / static_cast<double>(dimensions));
  }
  for (std::size_t pair = 0; pair < factors.size(); ++pair) {
    if (!(factors[pair] > 0) || !std::isfinite(factors[pair])) {
      metadata.unsupported(
          fmt::format("tensor 'rope_freqs.weight' holds {}, but its factors must "
                      "be positive",
                      factors[pair]));
    }
    rope.inverse_frequencies[pair] /= static_cast<double>(factors[pair]);
  }
  if (linear) {
    for (double& frequency : rope.inverse_frequencies) frequency /= factor;
  }
  if (yarn) {
    const Yarn ramp{base,
                    static_cast<double>(dimensions),
                    static_cast<double>(metadata.find_uint("rope.scaling.original_context_length")
                                            .value_or(metadata.uint("context_length"))),
                    factor,
                    positive(metadata, "rope.scaling.yarn_beta_fast", 32.0),
                    positive(metadata, "rope.scaling.yarn_beta_slow", 1.0)};
    if (ramp.original_context < 1) metadata.refuse("rope.scaling.original_context_length", "is 0");
    for (std::size_t pair = 0; pair < rope.inverse_frequencies.size(); ++pair) {
      double& frequency = rope.inverse_frequencies[pair];
      frequency = ramp.scaled(frequency, static_cast<double>(pair));
    }
    rope.magnitude = (1.0 + 0.1 * std::log(std::max(1.0, factor))) *
                     positive(metadata, "rope.scaling.attn_factor", 1.0);
  }
  return rope;
}

}  // namespace edgerunner
