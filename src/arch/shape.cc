#include "arch/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>

#include "edgerunner/error.h"

namespace edgerunner {
namespace {

struct Shape {
  std::string_view name;
  std::uint32_t layers, dim, heads, kv_heads, head_dim, ffn, vocab;
  double rope_base;
  std::uint32_t context;
  bool tied;
  bool qk_norm;
  float epsilon;
};

// From the models' published config.json.
constexpr std::array<Shape, 4> kShapes = {{
    {"smollm2-135m", 30, 576, 9, 3, 64, 1536, 49152, 100000.0, 8192, true, false, 1e-5F},
    {"llama32-1b", 16, 2048, 32, 8, 64, 8192, 128256, 500000.0, 131072, true, false, 1e-5F},
    {"qwen3-0.6b", 28, 1024, 16, 8, 128, 3072, 151936, 1000000.0, 40960, true, true, 1e-6F},
    {"llama3-8b", 32, 4096, 32, 8, 128, 14336, 128256, 500000.0, 8192, false, false, 1e-5F},
}};

Matrix matrix(std::string_view name, ElementType type, std::uint32_t rows, std::uint32_t cols) {
  if (cols % traits(type).block_length != 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} has rows of {} elements, which {} cannot hold (blocks of {})", name,
                            cols, traits(type).name, traits(type).block_length));
  }
  return {name, type, rows, cols, {}};
}

}  // namespace

std::vector<std::string> shape_names() {
  std::vector<std::string> names;
  names.reserve(std::size(kShapes));
  for (const Shape& shape : kShapes) names.emplace_back(shape.name);
  return names;
}

Decoder shape_decoder(std::string_view name, ElementType type) {
  for (const Shape& s : kShapes) {
    if (s.name != name) continue;
    Decoder decoder;
    DecoderSpec& spec = decoder.spec;
    spec.architecture = s.qk_norm ? "qwen3" : "llama";
    spec.name = s.name;
    spec.dim = s.dim;
    spec.vocab_size = s.vocab;
    spec.context_length = s.context;
    spec.norm_epsilon = s.epsilon;
    spec.rope.layout = s.qk_norm ? RopeLayout::half_split : RopeLayout::interleaved;
    for (std::uint32_t i = 0; i < s.head_dim / 2; ++i) {
      spec.rope.inverse_frequencies.push_back(std::pow(s.rope_base, -2.0 * i / s.head_dim));
    }
    const std::uint32_t q = s.heads * s.head_dim;
    const std::uint32_t kv = s.kv_heads * s.head_dim;
    Weights& weights = decoder.weights;
    weights.embedding = matrix("token_embd.weight", type, s.vocab, s.dim);
    weights.head = s.tied ? weights.embedding : matrix("output.weight", type, s.vocab, s.dim);
    weights.output_norm.assign(s.dim, 1.0F);
    for (std::uint32_t i = 0; i < s.layers; ++i) {
      spec.layers.push_back({s.heads, s.kv_heads, s.head_dim, s.ffn, 0,
                             1.0F / std::sqrt(static_cast<float>(s.head_dim))});
      LayerWeights& layer = weights.layers.emplace_back();
      layer.attention.norm.assign(s.dim, 1.0F);
      layer.attention.q = matrix("attn_q.weight", type, q, s.dim);
      layer.attention.k = matrix("attn_k.weight", type, kv, s.dim);
      layer.attention.v = matrix("attn_v.weight", type, kv, s.dim);
      layer.attention.o = matrix("attn_output.weight", type, s.dim, q);
      if (s.qk_norm) {
        layer.attention.q_norm.assign(s.head_dim, 1.0F);
        layer.attention.k_norm.assign(s.head_dim, 1.0F);
      }
      layer.feed_forward.norm.assign(s.dim, 1.0F);
      layer.feed_forward.gate = matrix("ffn_gate.weight", type, s.ffn, s.dim);
      layer.feed_forward.up = matrix("ffn_up.weight", type, s.ffn, s.dim);
      layer.feed_forward.down = matrix("ffn_down.weight", type, s.dim, s.ffn);
    }
    return decoder;
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("no shape is called {}; there are {}", name,
                                                       fmt::join(shape_names(), ", ")));
}

}  // namespace edgerunner
