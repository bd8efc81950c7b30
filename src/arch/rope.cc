#include "arch/rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <string_view>

namespace edgerunner {
namespace {

constexpr double kDefaultBase = 10000.0;

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

std::uint32_t original_context(const Metadata& metadata) {
  constexpr std::string_view kKey = "rope.scaling.original_context_length";
  const std::uint32_t context = metadata.find_uint(kKey).value_or(metadata.uint("context_length"));
  if (context == 0) metadata.refuse(kKey, "is 0");
  return context;
}

void divide(const Metadata& metadata, std::string_view tensor, std::span<const float> factors,
            std::span<double> frequencies) {
  for (std::size_t pair = 0; pair < factors.size(); ++pair) {
    if (!(factors[pair] > 0) || !std::isfinite(factors[pair])) {
      metadata.unsupported(fmt::format("tensor '{}' holds {}, but its factors must be positive",
                                       tensor, factors[pair]));
    }
    frequencies[pair] /= static_cast<double>(factors[pair]);
  }
}

void apply_yarn(const Metadata& metadata, std::uint32_t dimensions, RopeSpec& rope) {
  const double factor = positive(metadata, "rope.scaling.factor", 1.0);
  const Yarn ramp{positive(metadata, "rope.freq_base", kDefaultBase),
                  static_cast<double>(dimensions),
                  static_cast<double>(original_context(metadata)),
                  factor,
                  positive(metadata, "rope.scaling.yarn_beta_fast", 32.0),
                  positive(metadata, "rope.scaling.yarn_beta_slow", 1.0)};
  for (std::size_t pair = 0; pair < rope.inverse_frequencies.size(); ++pair) {
    double& frequency = rope.inverse_frequencies[pair];
    frequency = ramp.scaled(frequency, static_cast<double>(pair));
  }
  rope.magnitude = (1.0 + 0.1 * std::log(std::max(1.0, factor))) *
                   positive(metadata, "rope.scaling.attn_factor", 1.0);
}

void apply_longrope(const Metadata& metadata, const RopeFactors& factors, RopeSpec& rope) {
  rope.long_context = original_context(metadata);
  rope.long_inverse_frequencies = rope.inverse_frequencies;
  divide(metadata, "rope_factors_long.weight", factors.long_ones, rope.long_inverse_frequencies);
  divide(metadata, "rope_factors_short.weight", factors.short_ones, rope.inverse_frequencies);
  // Ding et al. 2024, section 3.2: the entropy of attention over a longer context.
  const double original = std::max(2.0, static_cast<double>(rope.long_context));
  const double growth =
      std::max(1.0, static_cast<double>(metadata.uint("context_length")) / original);
  rope.magnitude = positive(metadata, "rope.scaling.attn_factor",
                            std::sqrt(1.0 + std::log(growth) / std::log(original)));
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

RopeSpec read_plain_rope(const Metadata& metadata, std::string_view base_key, double fallback,
                         RopeLayout layout, std::uint32_t dimensions) {
  const double base = positive(metadata, base_key, fallback);
  RopeSpec rope;
  rope.layout = layout;
  rope.inverse_frequencies.resize(dimensions / 2);
  for (std::size_t pair = 0; pair < rope.inverse_frequencies.size(); ++pair) {
    rope.inverse_frequencies[pair] =
        std::pow(base, -2.0 * static_cast<double>(pair) / static_cast<double>(dimensions));
  }
  return rope;
}

RopeSpec read_rope(const Metadata& metadata, RopeLayout layout, std::uint32_t dimensions,
                   const RopeFactors& factors) {
  const std::string_view scaling = metadata.find_string("rope.scaling.type").value_or("none");
  const bool linear = scaling == "linear";
  const bool yarn = scaling == "yarn";
  const bool longrope = !factors.long_ones.empty();
  if (!linear && !yarn && scaling != "none" && !(longrope && scaling == "longrope")) {
    metadata.unsupported(fmt::format("RoPE scaling type '{}' is not supported", scaling));
  }

  RopeSpec rope = read_plain_rope(metadata, "rope.freq_base", kDefaultBase, layout, dimensions);
  divide(metadata, "rope_freqs.weight", factors.fixed, rope.inverse_frequencies);
  if (linear) {
    const double factor = positive(metadata, "rope.scaling.factor", 1.0);
    for (double& frequency : rope.inverse_frequencies) frequency /= factor;
  }
  if (yarn) apply_yarn(metadata, dimensions, rope);
  if (longrope) apply_longrope(metadata, factors, rope);
  return rope;
}

}  // namespace edgerunner
