#include "family_shapes.h"

#include <cmath>

#include "arch/shape.h"

namespace edgerunner {
namespace {

// From the models' published config.json. The matrices are all of one type but for the router,
// which files keep in F32.
struct Sizes {
  std::uint32_t layers, dim, heads, kv_heads, head_dim, ffn, vocab;
  double rope_base;
};

Decoder plain(const Sizes& s, ElementType type) {
  Decoder decoder;
  DecoderSpec& spec = decoder.spec;
  spec.dim = s.dim;
  spec.vocab_size = s.vocab;
  spec.context_length = 32768;
  spec.norm_epsilon = 1e-6F;
  spec.rope.layout = RopeLayout::half_split;
  for (std::uint32_t i = 0; i < s.head_dim / 2; ++i) {
    spec.rope.inverse_frequencies.push_back(std::pow(s.rope_base, -2.0 * i / s.head_dim));
  }
  const std::uint32_t q = s.heads * s.head_dim;
  const std::uint32_t kv = s.kv_heads * s.head_dim;
  decoder.weights.embedding = {"token_embd.weight", type, s.vocab, s.dim, {}};
  decoder.weights.output_norm.assign(s.dim, 1.0F);
  for (std::uint32_t i = 0; i < s.layers; ++i) {
    spec.layers.push_back({s.heads, s.kv_heads, s.head_dim, s.ffn, 0,
                           1.0F / std::sqrt(static_cast<float>(s.head_dim))});
    LayerWeights& layer = decoder.weights.layers.emplace_back();
    layer.attention.norm.assign(s.dim, 1.0F);
    layer.attention.q = {"attn_q.weight", type, q, s.dim, {}};
    layer.attention.k = {"attn_k.weight", type, kv, s.dim, {}};
    layer.attention.v = {"attn_v.weight", type, kv, s.dim, {}};
    layer.attention.o = {"attn_output.weight", type, s.dim, q, {}};
    layer.attention.q_norm.assign(s.head_dim, 1.0F);
    layer.attention.k_norm.assign(s.head_dim, 1.0F);
    layer.feed_forward.norm.assign(s.dim, 1.0F);
  }
  return decoder;
}

Decoder qwen3_30b_a3b(ElementType type) {
  const Sizes s{48, 2048, 32, 4, 128, 6144, 151936, 1e6};
  constexpr MixtureSpec kMixture{.count = 128, .used = 8, .ffn_dim = 768, .normalised = true};
  Decoder decoder = plain(s, type);
  decoder.spec.architecture = "qwen3moe";
  decoder.weights.head = {"output.weight", type, s.vocab, s.dim, {}};
  for (LayerSpec& layer : decoder.spec.layers) layer.mixture = kMixture;
  const std::uint32_t ffn = kMixture.count * kMixture.ffn_dim;
  for (LayerWeights& layer : decoder.weights.layers) {
    MixtureWeights& w = layer.feed_forward.mixture;
    w.router = {"ffn_gate_inp.weight", ElementType::f32, kMixture.count, s.dim, {}};
    w.gate = {"ffn_gate_exps.weight", type, ffn, s.dim, {}};
    w.up = {"ffn_up_exps.weight", type, ffn, s.dim, {}};
    w.down = {"ffn_down_exps.weight", type, kMixture.count * s.dim, kMixture.ffn_dim, {}};
  }
  return decoder;
}

Decoder gemma3_1b(ElementType type) {
  const Sizes s{26, 1152, 4, 1, 256, 6912, 262144, 1e6};
  Decoder decoder = plain(s, type);
  DecoderSpec& spec = decoder.spec;
  spec.architecture = "gemma3";
  spec.activation = Activation::gelu_tanh;
  spec.post_norms = true;
  spec.embedding_scale = std::sqrt(static_cast<float>(s.dim));
  spec.local_rope = spec.rope;
  for (std::uint32_t i = 0; i < s.head_dim / 2; ++i) {
    spec.local_rope.inverse_frequencies[i] = std::pow(1e4, -2.0 * i / s.head_dim);
  }
  decoder.weights.head = decoder.weights.embedding;
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    if (i % 6 != 5) {
      spec.layers[i].rope = LayerRope::local;
      spec.layers[i].sliding_window = 512;
    }
    LayerWeights& layer = decoder.weights.layers[i];
    layer.attention.post_norm.assign(s.dim, 1.0F);
    layer.feed_forward.post_norm.assign(s.dim, 1.0F);
    layer.feed_forward.gate = {"ffn_gate.weight", type, s.ffn, s.dim, {}};
    layer.feed_forward.up = {"ffn_up.weight", type, s.ffn, s.dim, {}};
    layer.feed_forward.down = {"ffn_down.weight", type, s.dim, s.ffn, {}};
  }
  return decoder;
}

}  // namespace

Decoder bench_decoder(std::string_view name, ElementType type) {
  if (name == "qwen3-30b-a3b") return qwen3_30b_a3b(type);
  if (name == "gemma3-1b") return gemma3_1b(type);
  return shape_decoder(name, type);
}

}  // namespace edgerunner
