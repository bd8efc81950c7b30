#include <fmt/format.h>

#include <cmath>
#include <string>

#include "arch/family.h"

namespace edgerunner {
namespace {

// No layer of a real model comes near; keeps heads * head_dim far from overflow.
constexpr std::uint32_t kMaxHeads = 1U << 16;

std::vector<LayerSpec> read_layers(const Metadata& metadata, std::uint32_t dim) {
  const std::uint32_t count = metadata.uint("block_count");
  // Every layer has tensors of its own, so a larger count could only be a lie.
  if (count > metadata.file().tensors().size()) {
    metadata.refuse("block_count", fmt::format("is {}, but the file has only {} tensors", count,
                                               metadata.file().tensors().size()));
  }
  const auto heads = metadata.per_layer("attention.head_count", count);
  const auto kv_heads = metadata.file().find(metadata.full_key("attention.head_count_kv"))
                            ? metadata.per_layer("attention.head_count_kv", count)
                            : heads;
  const auto ffn_dims = metadata.per_layer("feed_forward_length", count);
  const auto key_length = metadata.find_uint("attention.key_length");
  const auto value_length = metadata.find_uint("attention.value_length");
  const std::uint32_t window = metadata.find_uint("attention.sliding_window").value_or(0);
  const auto scale = metadata.find_float("attention.scale");

  std::vector<LayerSpec> layers(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (heads[i] > kMaxHeads) {
      metadata.refuse("attention.head_count", fmt::format("is {}, which no model has", heads[i]));
    }
    if (!key_length && dim % heads[i] != 0) {
      metadata.refuse(
          "attention.head_count",
          fmt::format("is {}, which does not divide embedding_length {}", heads[i], dim));
    }
    if (heads[i] % kv_heads[i] != 0) {
      metadata.refuse(
          "attention.head_count_kv",
          fmt::format("is {}, which does not divide head_count {}", kv_heads[i], heads[i]));
    }
    LayerSpec& layer = layers[i];
    layer.heads = heads[i];
    layer.kv_heads = kv_heads[i];
    layer.head_dim = key_length.value_or(dim / heads[i]);
    layer.ffn_dim = ffn_dims[i];
    layer.sliding_window = window;
    if (layer.head_dim == 0 || layer.head_dim > kMaxHeadDim) {
      metadata.unsupported(fmt::format("heads of {} dimensions are not supported (1 to {} are)",
                                       layer.head_dim, kMaxHeadDim));
    }
    if (value_length.value_or(layer.head_dim) != layer.head_dim) {
      metadata.unsupported(
          fmt::format("values of {} dimensions beside keys of {} are not supported", *value_length,
                      layer.head_dim));
    }
    layer.attention_scale =
        static_cast<float>(scale.value_or(1.0 / std::sqrt(static_cast<double>(layer.head_dim))));
  }
  return layers;
}

LayerWeights read_layer(TensorReader& tensors, std::uint32_t index, const LayerSpec& layer,
                        std::uint32_t dim, const PreNormTraits& traits) {
  const auto name = [&](std::string_view role) { return fmt::format("blk.{}.{}", index, role); };
  const std::uint32_t q_dim = layer.heads * layer.head_dim;
  const std::uint32_t kv_dim = layer.kv_heads * layer.head_dim;

  LayerWeights weights;
  AttentionWeights& attention = weights.attention;
  attention.norm = tensors.vector(name("attn_norm.weight"), dim);
  attention.q = tensors.matrix(name("attn_q.weight"), q_dim, dim);
  attention.k = tensors.matrix(name("attn_k.weight"), kv_dim, dim);
  attention.v = tensors.matrix(name("attn_v.weight"), kv_dim, dim);
  attention.o = tensors.matrix(name("attn_output.weight"), dim, q_dim);
  attention.q_bias = tensors.optional_vector(name("attn_q.bias"), q_dim);
  attention.k_bias = tensors.optional_vector(name("attn_k.bias"), kv_dim);
  attention.v_bias = tensors.optional_vector(name("attn_v.bias"), kv_dim);
  attention.o_bias = tensors.optional_vector(name("attn_output.bias"), dim);
  if (traits.qk_norm) {
    attention.q_norm = tensors.vector(name("attn_q_norm.weight"), layer.head_dim);
    attention.k_norm = tensors.vector(name("attn_k_norm.weight"), layer.head_dim);
  }

  FeedForwardWeights& feed_forward = weights.feed_forward;
  feed_forward.norm = tensors.vector(name("ffn_norm.weight"), dim);
  feed_forward.gate = tensors.matrix(name("ffn_gate.weight"), layer.ffn_dim, dim);
  feed_forward.up = tensors.matrix(name("ffn_up.weight"), layer.ffn_dim, dim);
  feed_forward.down = tensors.matrix(name("ffn_down.weight"), dim, layer.ffn_dim);
  feed_forward.gate_bias = tensors.optional_vector(name("ffn_gate.bias"), layer.ffn_dim);
  feed_forward.up_bias = tensors.optional_vector(name("ffn_up.bias"), layer.ffn_dim);
  feed_forward.down_bias = tensors.optional_vector(name("ffn_down.bias"), dim);
  return weights;
}

float read_epsilon(const Metadata& metadata) {
  constexpr std::string_view kKey = "attention.layer_norm_rms_epsilon";
  const auto epsilon = metadata.find_float(kKey);
  if (!epsilon) metadata.refuse(kKey, "is missing");
  if (!(*epsilon >= 0) || *epsilon > 1) {
    metadata.refuse(kKey, fmt::format("is {}, but must lie between 0 and 1", *epsilon));
  }
  return static_cast<float>(*epsilon);
}

}  // namespace

Decoder read_pre_norm_decoder(const Metadata& metadata, TensorReader& tensors,
                              const PreNormTraits& traits) {
  Decoder decoder;
  DecoderSpec& spec = decoder.spec;
  spec.architecture = metadata.architecture();
  spec.name = std::string(metadata.file().get_string("general.name").value_or(""));
  spec.dim = metadata.uint("embedding_length");
  spec.context_length = metadata.uint("context_length");
  spec.norm_epsilon = read_epsilon(metadata);
  spec.layers = read_layers(metadata, spec.dim);

  Weights& weights = decoder.weights;
  weights.embedding = tensors.matrix("token_embd.weight", 0, spec.dim);
  spec.vocab_size = weights.embedding.rows;
  weights.output_norm = tensors.vector("output_norm.weight", spec.dim);
  weights.head = tensors.has("output.weight")
                     ? tensors.matrix("output.weight", spec.vocab_size, spec.dim)
                     : weights.embedding;
  for (std::uint32_t i = 0; i < spec.layers.size(); ++i) {
    weights.layers.push_back(read_layer(tensors, i, spec.layers[i], spec.dim, traits));
  }

  const std::uint32_t dimensions = rope_dimensions(metadata, spec.layers.front().head_dim);
  spec.rope = read_rope(metadata, traits.rope_layout, dimensions,
                        tensors.optional_vector("rope_freqs.weight", dimensions / 2));
  for (const LayerSpec& layer : spec.layers) {
    if (layer.head_dim != spec.layers.front().head_dim) {
      metadata.unsupported("layers with different head dimensions are not supported");
    }
  }
  return decoder;
}

}  // namespace edgerunner
