#include "convert/config_metadata.h"

#include <fmt/format.h>

namespace edgerunner::convert {

Dimensions Dimensions::of(const Config& config) {
  // No layer of a real model comes near.
  constexpr std::uint32_t kMaxHeads = 1U << 16;
  constexpr std::uint32_t kMaxLayers = 1U << 16;
  Dimensions d;
  d.dim = config.uint("hidden_size");
  d.layers = config.uint("num_hidden_layers");
  d.heads = config.uint("num_attention_heads");
  d.kv_heads = config.find_uint("num_key_value_heads").value_or(d.heads);
  if (d.layers > kMaxLayers) config.refuse("num_hidden_layers", "is more than any model has");
  if (d.heads > kMaxHeads) config.refuse("num_attention_heads", "is more than any model has");
  if (d.kv_heads == 0 || d.heads % d.kv_heads != 0) {
    config.refuse("num_key_value_heads", "does not divide 'num_attention_heads'");
  }
  d.named_head_dim = config.has("head_dim");
  if (!d.named_head_dim && d.dim % d.heads != 0) {
    config.refuse("num_attention_heads", "does not divide 'hidden_size'");
  }
  d.head_dim = d.named_head_dim ? config.uint("head_dim") : d.dim / d.heads;
  d.vocab = config.uint("vocab_size");
  for (const std::string_view key : {"num_local_experts", "num_experts"}) {
    if (config.has(key)) d.experts = config.uint(key);
  }
  return d;
}

std::vector<FactorTensor> add_config_metadata(const Config& config, const Family& family,
                                              const Dimensions& d, MetadataKeys& keys) {
  for (const std::string_view key : {"hidden_act", "hidden_activation"}) {
    const auto activation = config.find_string(key);
    // The first Gemma files say "gelu" in hidden_act and were trained with the other.
    const bool ignored = key == "hidden_act" && config.has("hidden_activation");
    if (activation && *activation != family.activation && !ignored) {
      config.unsupported(fmt::format("'{}' is '{}'; this family is supported with '{}'", key,
                                     *activation, family.activation));
    }
  }
  keys.set_uint("context_length", config.uint("max_position_embeddings"));
  keys.set_uint("embedding_length", d.dim);
  keys.set_uint("block_count", d.layers);
  keys.set_uint("feed_forward_length", config.uint("intermediate_size"));
  keys.set_uint("attention.head_count", d.heads);
  keys.set_uint("attention.head_count_kv", d.kv_heads);
  keys.set_float(family.epsilon == "rms_norm_eps" ? "attention.layer_norm_rms_epsilon"
                                                  : "attention.layer_norm_epsilon",
                 config.float_value(family.epsilon));
  keys.set_uint("vocab_size", d.vocab);
  if (d.named_head_dim) {
    keys.set_uint("attention.key_length", d.head_dim);
    keys.set_uint("attention.value_length", d.head_dim);
  }
  if (family.add_metadata != nullptr) family.add_metadata(config, keys);
  return add_rope_metadata(config, d, keys);
}

}  // namespace edgerunner::convert
