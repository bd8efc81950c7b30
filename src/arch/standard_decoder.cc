#include <fmt/format.h>

#include <string>

#include "arch/family.h"

namespace edgerunner {
namespace {

float read_epsilon(const Metadata& metadata, NormKind norm) {
  const std::string_view key =
      norm == NormKind::rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon";
  const auto epsilon = metadata.find_float(key);
  if (!epsilon) metadata.refuse(key, "is missing");
  if (!(*epsilon >= 0) || *epsilon > 1) {
    metadata.refuse(key, fmt::format("is {}, but must lie between 0 and 1", *epsilon));
  }
  return static_cast<float>(*epsilon);
}

}  // namespace

Decoder read_standard_decoder(const Metadata& metadata, TensorReader& tensors,
                              const FamilyTraits& traits) {
  Decoder decoder;
  DecoderSpec& spec = decoder.spec;
  spec.architecture = metadata.architecture();
  spec.name = std::string(metadata.file().get_string("general.name").value_or(""));
  spec.dim = metadata.uint("embedding_length");
  spec.context_length = metadata.uint("context_length");
  spec.norm = traits.norm;
  spec.norm_epsilon = read_epsilon(metadata, traits.norm);
  spec.activation = traits.activation;
  spec.post_norms = traits.post_norm;
  spec.layers = read_layer_specs(metadata, spec.dim);

  Weights& weights = decoder.weights;
  weights.embedding = tensors.matrix("token_embd.weight", 0, spec.dim);
  spec.vocab_size = weights.embedding.rows;
  weights.output_norm = tensors.vector("output_norm.weight", spec.dim);
  if (spec.norm == NormKind::layer) {
    weights.output_norm_bias = tensors.vector("output_norm.bias", spec.dim);
  }
  weights.head = tensors.has("output.weight")
                     ? tensors.matrix("output.weight", spec.vocab_size, spec.dim)
                     : weights.embedding;
  for (std::uint32_t i = 0; i < spec.layers.size(); ++i) {
    weights.layers.push_back(
        read_layer_weights(metadata, tensors, i, spec.layers[i], spec.dim, traits));
  }

  const std::uint32_t dimensions = rope_dimensions(metadata, spec.layers.front().head_dim);
  const RopeFactors factors{tensors.optional_vector("rope_freqs.weight", dimensions / 2),
                            tensors.optional_vector("rope_factors_short.weight", dimensions / 2),
                            tensors.optional_vector("rope_factors_long.weight", dimensions / 2)};
  if (factors.short_ones.empty() != factors.long_ones.empty()) {
    metadata.unsupported(
        "of 'rope_factors_short.weight' and 'rope_factors_long.weight' only one "
        "is there; LongRoPE needs both");
  }
  spec.rope = read_rope(metadata, traits.rope_layout, dimensions, factors);
  for (const LayerSpec& layer : spec.layers) {
    if (layer.head_dim != spec.layers.front().head_dim) {
      metadata.unsupported("layers with different head dimensions are not supported");
    }
  }
  return decoder;
}

}  // namespace edgerunner
