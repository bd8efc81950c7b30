#pragma once

#include <cmath>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "arch/decoder.h"
#include "tensor/quantize.h"

namespace edgerunner::test {

// The shape of a random decoder that needs no file.
struct DecoderShape {
  std::uint32_t layers = 2;
  std::uint32_t heads = 6;
  std::uint32_t kv_heads = 2;
  std::uint32_t head_dim = 32;
  std::uint32_t dim = 96;
  std::uint32_t ffn_dim = 160;
  std::uint32_t vocab = 97;
  std::uint32_t window = 0;  // of every layer
  ElementType type = ElementType::f32;
  bool biases = false;
  bool head_norms = false;
  RopeLayout rope = RopeLayout::interleaved;
  // What families have beyond llama; scales, caps, windows and rotations are set in the spec.
  bool layer_norms = false;      // LayerNorm for RMSNorm
  bool pre_norms = true;         // norms before blocks
  bool post_norms = false;       // norms after blocks
  bool whole_row_norms = false;  // of queries and of keys
  bool gated = true;             // a gate in the feed-forward network
  Activation activation = Activation::silu;
  MixtureSpec mixture = {};
};

// A decoder with random weights, which it owns. The same shape and seed give the same model.
class RandomDecoder {
 public:
  explicit RandomDecoder(const DecoderShape& shape, std::uint32_t seed = 1) : random_(seed) {
    const std::uint32_t q_rows = shape.heads * shape.head_dim;
    const std::uint32_t kv_rows = shape.kv_heads * shape.head_dim;
    DecoderSpec& spec = decoder_.spec;
    spec.architecture = "llama";
    spec.dim = shape.dim;
    spec.vocab_size = shape.vocab;
    spec.context_length = 4096;
    spec.norm_epsilon = 1e-5F;
    spec.rope.layout = shape.rope;
    spec.norm = shape.layer_norms ? NormKind::layer : NormKind::rms;
    spec.activation = shape.activation;
    spec.post_norms = shape.post_norms;
    for (std::uint32_t i = 0; i < shape.head_dim / 2; ++i) {
      spec.rope.inverse_frequencies.push_back(std::pow(10000.0, -2.0 * i / shape.head_dim));
    }
    decoder_.weights.embedding = matrix(shape.vocab, shape.dim, shape.type, 1.0F);
    for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
      spec.layers.push_back({shape.heads, shape.kv_heads, shape.head_dim, shape.ffn_dim,
                             shape.window, 1.0F / std::sqrt(static_cast<float>(shape.head_dim))});
      spec.layers.back().mixture = shape.mixture;
      LayerWeights w;
      if (shape.pre_norms) w.attention.norm = vector(shape.dim, 1.0F);
      w.attention.q = matrix(q_rows, shape.dim, shape.type);
      w.attention.k = matrix(kv_rows, shape.dim, shape.type);
      w.attention.v = matrix(kv_rows, shape.dim, shape.type);
      w.attention.o = matrix(shape.dim, q_rows, shape.type);
      if (shape.pre_norms) w.feed_forward.norm = vector(shape.dim, 1.0F);
      if (shape.mixture.count == 0) {
        if (shape.gated) w.feed_forward.gate = matrix(shape.ffn_dim, shape.dim, shape.type);
        w.feed_forward.up = matrix(shape.ffn_dim, shape.dim, shape.type);
        w.feed_forward.down = matrix(shape.dim, shape.ffn_dim, shape.type);
      } else {
        w.feed_forward.mixture = mixture(shape);
      }
      if (shape.biases) {
        w.attention.q_bias = vector(q_rows, 0.0F);
        w.attention.k_bias = vector(kv_rows, 0.0F);
        w.attention.v_bias = vector(kv_rows, 0.0F);
        w.attention.o_bias = vector(shape.dim, 0.0F);
        if (shape.gated) w.feed_forward.gate_bias = vector(shape.ffn_dim, 0.0F);
        w.feed_forward.up_bias = vector(shape.ffn_dim, 0.0F);
        w.feed_forward.down_bias = vector(shape.dim, 0.0F);
      }
      if (shape.head_norms) {
        w.attention.q_norm = vector(shape.head_dim, 1.0F);
        w.attention.k_norm = vector(shape.head_dim, 1.0F);
      }
      if (shape.whole_row_norms) {
        w.attention.q_norm = vector(q_rows, 1.0F);
        w.attention.k_norm = vector(kv_rows, 1.0F);
      }
      if (shape.layer_norms) {
        w.attention.norm_bias = vector(shape.dim, 0.0F);
        w.feed_forward.norm_bias = vector(shape.dim, 0.0F);
      }
      if (shape.post_norms) {
        w.attention.post_norm = vector(shape.dim, 1.0F);
        w.feed_forward.post_norm = vector(shape.dim, 1.0F);
      }
      decoder_.weights.layers.push_back(std::move(w));
    }
    decoder_.weights.output_norm = vector(shape.dim, 1.0F);
    if (shape.layer_norms) decoder_.weights.output_norm_bias = vector(shape.dim, 0.0F);
    decoder_.weights.head = matrix(shape.vocab, shape.dim, shape.type);
  }

  RandomDecoder(const RandomDecoder&) = delete;
  RandomDecoder& operator=(const RandomDecoder&) = delete;

  const Decoder& decoder() const { return decoder_; }

  // Random tokens of its vocabulary.
  std::vector<TokenId> tokens(std::size_t count, std::uint32_t seed) const {
    std::mt19937 random(seed);
    std::vector<TokenId> result(count);
    for (TokenId& token : result) {
      token = static_cast<TokenId>(random() % decoder_.spec.vocab_size);
    }
    return result;
  }

 private:
  Vector vector(std::uint32_t size, float mean) {
    std::normal_distribution<float> normal(mean, 0.2F);
    Vector values(size);
    for (float& value : values) value = normal(random_);
    return values;
  }

  MixtureWeights mixture(const DecoderShape& shape) {
    const MixtureSpec& m = shape.mixture;
    MixtureWeights w;
    w.router = matrix(m.count, shape.dim, ElementType::f32);
    w.gate = matrix(m.count * m.ffn_dim, shape.dim, shape.type);
    w.up = matrix(m.count * m.ffn_dim, shape.dim, shape.type);
    w.down = matrix(m.count * shape.dim, m.ffn_dim, shape.type);
    if (m.shared_ffn_dim > 0) {
      w.shared_gate = matrix(m.shared_ffn_dim, shape.dim, shape.type);
      w.shared_up = matrix(m.shared_ffn_dim, shape.dim, shape.type);
      w.shared_down = matrix(shape.dim, m.shared_ffn_dim, shape.type);
      w.shared_router = matrix(1, shape.dim, ElementType::f32);
    }
    return w;
  }

  // Gaussian weights that keep the variance of what they multiply.
  Matrix matrix(std::uint32_t rows, std::uint32_t cols, ElementType type, float gain = 0) {
    if (gain == 0) gain = 1.0F / std::sqrt(static_cast<float>(cols));
    std::normal_distribution<float> normal(0.0F, gain);
    std::vector<float> values(std::size_t{rows} * cols);
    for (float& value : values) value = normal(random_);
    std::vector<std::byte>& blocks = storage_.emplace_back(row_bytes(type, cols) * rows);
    quantize(type, values, blocks);
    return {"random", type, rows, cols, blocks};
  }

  std::mt19937 random_;
  std::deque<std::vector<std::byte>> storage_;
  Decoder decoder_;
};

}  // namespace edgerunner::test
