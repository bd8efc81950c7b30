#include <fmt/format.h>

#include <cmath>

#include "arch/family.h"

namespace edgerunner {
namespace {

// No layer of a real model comes near; keeps heads * head_dim and 2 * ffn_dim far from overflow.
constexpr std::uint32_t kMaxHeads = 1U << 16;
constexpr std::uint32_t kMaxFfnDim = 1U << 28;

}  // namespace

std::vector<LayerSpec> read_layer_specs(const Metadata& metadata, std::uint32_t dim) {
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
    if (ffn_dims[i] > kMaxFfnDim) {
      metadata.refuse("feed_forward_length", fmt::format("is {}, which no model has", ffn_dims[i]));
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

}  // namespace edgerunner
