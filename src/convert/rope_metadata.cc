#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "convert/config_metadata.h"

namespace edgerunner::convert {
namespace {

double positive(const Config& config, std::string_view key) {
  const double value = config.float_value(key);
  if (!(value > 0)) config.refuse(key, "must be positive");
  return value;
}

// RoPE's numbers stand in config.json itself and in "rope_scaling", or since transformers 5 all of
// them in "rope_parameters", there by kind of layer where kinds differ.
struct RopeConfig {
  double base = 0;
  double local_base = 0;  // of layers with a window; 0: the same
  std::optional<Config> scaling;
};

RopeConfig read(const Config& config) {
  RopeConfig rope;
  if (config.has("rope_local_base_freq")) {
    rope.local_base = positive(config, "rope_local_base_freq");
  }
  rope.scaling = config.find_object("rope_scaling");
  if (const auto parameters = config.find_object("rope_parameters")) {
    rope.scaling = parameters;
    if (const auto full = parameters->find_object("full_attention")) rope.scaling = full;
    if (const auto sliding = parameters->find_object("sliding_attention")) {
      rope.local_base = positive(*sliding, "rope_theta");
      if (sliding->find_string("rope_type").value_or("default") != "default") {
        sliding->unsupported("scaled RoPE in layers with a window is not supported");
      }
    }
    if (rope.scaling->has("rope_theta")) rope.base = positive(*rope.scaling, "rope_theta");
  }
  // Families differ in what they take where it is missing.
  if (rope.base == 0) rope.base = positive(config, "rope_theta");
  return rope;
}

double original_context(const Config& config, const Config& scaling) {
  constexpr std::string_view kKey = "original_max_position_embeddings";
  if (scaling.has(kKey)) return scaling.uint(kKey);
  return config.has(kKey) ? config.uint(kKey) : config.uint("max_position_embeddings");
}

// Llama 3.1: pairs that turn slowly are slowed down further, with a smooth passage between.
std::vector<float> llama3_factors(const Config& config, const Config& scaling, double base,
                                  std::uint32_t dimensions) {
  const double factor = positive(scaling, "factor");
  const double low = positive(scaling, "low_freq_factor");
  const double high = positive(scaling, "high_freq_factor");
  const double context = original_context(config, scaling);
  if (!(high > low)) scaling.refuse("high_freq_factor", "must be more than 'low_freq_factor'");
  std::vector<float> factors;
  for (std::uint32_t pair = 0; pair < dimensions / 2; ++pair) {
    const double wavelength = 2 * std::numbers::pi * std::pow(base, 2.0 * pair / dimensions);
    double divisor = 1;
    if (wavelength > context / low) {
      divisor = factor;
    } else if (wavelength >= context / high) {
      const double smooth = (context / wavelength - low) / (high - low);
      divisor = 1 / ((1 - smooth) / factor + smooth);
    }
    factors.push_back(static_cast<float>(divisor));
  }
  return factors;
}

std::vector<float> listed_factors(const Config& scaling, std::string_view key,
                                  std::uint32_t dimensions) {
  const nlohmann::json* list = scaling.find(key);
  if (list == nullptr || !list->is_array() || list->size() != dimensions / 2) {
    scaling.refuse(key, fmt::format("must be a list of {} numbers", dimensions / 2));
  }
  std::vector<float> factors;
  for (const nlohmann::json& value : *list) {
    if (!value.is_number() || !(value.get<double>() > 0) || !(value.get<double>() < 1e30)) {
      scaling.refuse(key, "must hold positive numbers");
    }
    factors.push_back(value.get<float>());
  }
  return factors;
}

void add_yarn(const Config& config, const Config& scaling, MetadataKeys& keys) {
  for (const std::string_view key : {"mscale", "mscale_all_dim"}) {
    if (scaling.has(key)) scaling.unsupported(fmt::format("'{}' is not supported", key));
  }
  if (!scaling.find_bool("truncate").value_or(true)) {
    scaling.unsupported("'truncate' must not be false");
  }
  const double factor = positive(scaling, "factor");
  keys.set_text("rope.scaling.type", "yarn");
  keys.set_float("rope.scaling.factor", factor);
  keys.set_uint("rope.scaling.original_context_length",
                static_cast<std::uint32_t>(original_context(config, scaling)));
  if (scaling.has("beta_fast")) {
    keys.set_float("rope.scaling.yarn_beta_fast", positive(scaling, "beta_fast"));
  }
  if (scaling.has("beta_slow")) {
    keys.set_float("rope.scaling.yarn_beta_slow", positive(scaling, "beta_slow"));
  }
  if (scaling.has("attention_factor")) {
    // GGUF's multiplies what the factor gives by itself.
    keys.set_float("rope.scaling.attn_factor", positive(scaling, "attention_factor") /
                                                   (1 + 0.1 * std::log(std::max(1.0, factor))));
  }
}

std::vector<FactorTensor> add_longrope(const Config& config, const Config& scaling,
                                       std::uint32_t dimensions, MetadataKeys& keys) {
  const double original = original_context(config, scaling);
  const double growth = config.uint("max_position_embeddings") / original;
  double magnitude = 1;
  if (scaling.has("attention_factor")) {
    magnitude = positive(scaling, "attention_factor");
  } else if (growth > 1 && original > 1) {
    magnitude = std::sqrt(1 + std::log(growth) / std::log(original));
  }
  keys.set_text("rope.scaling.type", "longrope");
  keys.set_uint("rope.scaling.original_context_length", static_cast<std::uint32_t>(original));
  keys.set_float("rope.scaling.attn_factor", magnitude);
  return {{"rope_factors_long.weight", listed_factors(scaling, "long_factor", dimensions)},
          {"rope_factors_short.weight", listed_factors(scaling, "short_factor", dimensions)}};
}

}  // namespace

std::vector<FactorTensor> add_rope_metadata(const Config& config, const Dimensions& d,
                                            MetadataKeys& keys) {
  const RopeConfig rope = read(config);
  double part = config.find_float("partial_rotary_factor").value_or(1);
  if (rope.scaling) part = rope.scaling->find_float("partial_rotary_factor").value_or(part);
  const auto dimensions = static_cast<std::uint32_t>(std::clamp(part, 0.0, 1.0) * d.head_dim);
  if (dimensions == 0 || dimensions % 2 != 0) {
    config.refuse("partial_rotary_factor", "leaves an odd number of dimensions to rotate, or none");
  }
  keys.set_float("rope.freq_base", rope.base);
  keys.set_uint("rope.dimension_count", dimensions);
  if (rope.local_base != 0) keys.set_float("rope.freq_base_swa", rope.local_base);
  if (!rope.scaling) return {};

  const auto type = rope.scaling->find_string("rope_type")
                        .value_or(rope.scaling->find_string("type").value_or("default"));
  if (type == "default") return {};
  if (type == "linear") {
    keys.set_text("rope.scaling.type", "linear");
    keys.set_float("rope.scaling.factor", positive(*rope.scaling, "factor"));
    return {};
  }
  if (type == "yarn") {
    add_yarn(config, *rope.scaling, keys);
    return {};
  }
  if (type == "llama3") {
    return {{"rope_freqs.weight", llama3_factors(config, *rope.scaling, rope.base, dimensions)}};
  }
  if (type == "longrope" || type == "su") {
    return add_longrope(config, *rope.scaling, dimensions, keys);
  }
  rope.scaling->unsupported(fmt::format("the RoPE scaling '{}' is not supported", type));
}

}  // namespace edgerunner::convert
