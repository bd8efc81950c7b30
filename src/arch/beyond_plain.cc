#include "arch/beyond_plain.h"

namespace edgerunner {

std::string_view beyond_plain(const Decoder& decoder) {
  const DecoderSpec& spec = decoder.spec;
  if (spec.norm != NormKind::rms) return "LayerNorm";
  if (spec.activation != Activation::silu) return "GeGLU";
  if (spec.logit_cap != 0) return "a soft cap on logits";
  if (spec.embedding_scale != 1 || spec.residual_scale != 1 || spec.logit_scale != 1) {
    return "multipliers of embedding, residual stream or logits";
  }
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    const LayerSpec& layer = spec.layers[i];
    const AttentionWeights& attention = decoder.weights.layers[i].attention;
    if (layer.mixture.count > 0) return "a mixture of experts";
    if (layer.attention_cap != 0) return "a soft cap on attention scores";
    if (layer.rope != LayerRope::main) return "layers with a RoPE of their own or none";
    if (attention.norm.empty() || !attention.post_norm.empty()) return "norms after a block";
    if (attention.q_norm.size() > layer.head_dim) return "norms over all heads together";
  }
  return {};
}

}  // namespace edgerunner
