#include <cmath>

#include "arch/family.h"

namespace edgerunner {

namespace {

Decoder read_gemma(const Metadata& metadata, TensorReader& tensors, QkNorm qk_norm) {
  Decoder decoder = read_standard_decoder(metadata, tensors,
                                          {.rope_layout = RopeLayout::half_split,
                                           .qk_norm = qk_norm,
                                           .post_norm = true,
                                           .activation = Activation::gelu_tanh});
  static_cast<void>(metadata.uint("attention.sliding_window"));  // must be there
  decoder.spec.embedding_scale = std::sqrt(static_cast<float>(decoder.spec.dim));
  return decoder;
}

// The scale of the published models is one over the root of query_pre_attn_scalar, which the file
// does not carry: head_dim, but dim / heads in the 27B models, known by their number of layers.
void set_27b_scale(DecoderSpec& spec, std::size_t layers_of_27b) {
  if (spec.layers.size() != layers_of_27b) return;
  for (LayerSpec& layer : spec.layers) {
    layer.attention_scale =
        1.0F / std::sqrt(static_cast<float>(spec.dim) / static_cast<float>(layer.heads));
  }
}

// Of each `period` layers the last sees the whole context, the others a window.
void set_global_layers(DecoderSpec& spec, std::size_t period) {
  for (std::size_t i = period - 1; i < spec.layers.size(); i += period) {
    spec.layers[i].sliding_window = 0;
  }
}

float cap(const Metadata& metadata, std::string_view key, double fallback) {
  const double value = metadata.find_float(key).value_or(fallback);
  if (value < 0) metadata.refuse(key, "is negative");
  return static_cast<float>(value);
}

}  // namespace

// Gemma 2: norms before and after each block, GeGLU, soft caps on scores and logits, every other
// layer with a window.
Decoder read_gemma2(const Metadata& metadata, TensorReader& tensors) {
  Decoder decoder = read_gemma(metadata, tensors, QkNorm::none);
  DecoderSpec& spec = decoder.spec;
  set_27b_scale(spec, 46);
  set_global_layers(spec, 2);
  spec.logit_cap = cap(metadata, "final_logit_softcapping", 30);
  for (LayerSpec& layer : spec.layers) {
    layer.attention_cap = cap(metadata, "attn_logit_softcapping", 50);
  }
  return decoder;
}

// Gemma 3: RMSNorm on each query and key head in place of the caps; five layers with a window and a
// RoPE base of their own to one without.
Decoder read_gemma3(const Metadata& metadata, TensorReader& tensors) {
  Decoder decoder = read_gemma(metadata, tensors, QkNorm::each_head);
  DecoderSpec& spec = decoder.spec;
  set_27b_scale(spec, 62);
  set_global_layers(spec, 6);
  const auto dimensions = static_cast<std::uint32_t>(2 * spec.rope.inverse_frequencies.size());
  spec.local_rope =
      read_plain_rope(metadata, "rope.freq_base_swa", 10000.0, RopeLayout::half_split, dimensions);
  for (LayerSpec& layer : spec.layers) {
    if (layer.sliding_window != 0) layer.rope = LayerRope::local;
  }
  return decoder;
}

}  // namespace edgerunner
