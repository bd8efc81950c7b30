#include "support/touch_decoder.h"

#include <cstdio>
#include <cstdlib>

#include "arch/decoder.h"

namespace edgerunner::test {
namespace {

void promise(bool kept, const char* what) {
  if (kept) return;
  std::fprintf(stderr, "read_decoder() broke a promise: %s\n", what);
  std::abort();
}

std::uint64_t touch(const Matrix& matrix, std::uint64_t rows, std::uint64_t cols) {
  promise(matrix.rows == rows && matrix.cols == cols, "matrices have the shapes of the spec");
  promise(matrix.data.size() == rows * row_bytes(matrix.type, cols), "matrices have all rows");
  std::uint64_t total = 0;
  for (const std::byte byte : matrix.data) total += static_cast<std::uint8_t>(byte);
  return total;
}

void check(const Vector& vector, std::uint64_t length) {
  promise(vector.size() == length, "vectors have the lengths of the spec");
}

void check_optional(const Vector& vector, std::uint64_t length) {
  if (!vector.empty()) check(vector, length);
}

std::uint64_t touch(const LayerWeights& weights, const LayerSpec& layer, std::uint64_t dim) {
  promise(layer.heads > 0 && layer.kv_heads > 0 && layer.heads % layer.kv_heads == 0,
          "query heads share key heads evenly");
  const std::uint64_t q_dim = std::uint64_t{layer.heads} * layer.head_dim;
  const std::uint64_t kv_dim = std::uint64_t{layer.kv_heads} * layer.head_dim;
  const AttentionWeights& attention = weights.attention;
  const FeedForwardWeights& feed_forward = weights.feed_forward;
  check_optional(attention.norm, dim);
  check_optional(attention.post_norm, dim);
  check_optional(feed_forward.post_norm, dim);
  check_optional(attention.q_bias, q_dim);
  check_optional(attention.k_bias, kv_dim);
  check_optional(attention.v_bias, kv_dim);
  check_optional(attention.o_bias, dim);
  check_optional(attention.q_norm, attention.q_norm.size() == q_dim ? q_dim : layer.head_dim);
  check_optional(attention.k_norm, attention.k_norm.size() == kv_dim ? kv_dim : layer.head_dim);
  check_optional(feed_forward.norm, dim);
  check_optional(feed_forward.gate_bias, layer.ffn_dim);
  check_optional(feed_forward.up_bias, layer.ffn_dim);
  check_optional(feed_forward.down_bias, dim);
  const std::uint64_t total = touch(attention.q, q_dim, dim) + touch(attention.k, kv_dim, dim) +
                              touch(attention.v, kv_dim, dim) + touch(attention.o, dim, q_dim);
  const MixtureSpec& mixture = layer.mixture;
  if (mixture.count > 0) {
    const MixtureWeights& m = feed_forward.mixture;
    const std::uint64_t hidden = std::uint64_t{mixture.count} * mixture.ffn_dim;
    promise(mixture.used > 0 && mixture.used <= mixture.count, "some of the experts are used");
    return total + touch(m.router, mixture.count, dim) + touch(m.gate, hidden, dim) +
           touch(m.up, hidden, dim) + touch(m.down, mixture.count * dim, mixture.ffn_dim);
  }
  return total + touch(feed_forward.gate, layer.ffn_dim, dim) +
         touch(feed_forward.up, layer.ffn_dim, dim) + touch(feed_forward.down, dim, layer.ffn_dim);
}

}  // namespace

std::uint64_t touch_decoder(const gguf::File& file) {
  const Decoder decoder = read_decoder(file);
  const DecoderSpec& spec = decoder.spec;
  const Weights& weights = decoder.weights;
  promise(spec.dim > 0 && spec.vocab_size > 0 && spec.context_length > 0, "sizes are positive");
  promise(!spec.layers.empty() && spec.layers.size() == weights.layers.size(),
          "each layer has its weights");
  promise(spec.rope.inverse_frequencies.size() <= spec.layers.front().head_dim / 2,
          "rotated pairs lie in the head");
  std::uint64_t total = touch(weights.embedding, spec.vocab_size, spec.dim) +
                        touch(weights.head, spec.vocab_size, spec.dim) + spec.common_window();
  check(weights.output_norm, spec.dim);
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    total += touch(weights.layers[i], spec.layers[i], spec.dim);
  }
  return total;
}

}  // namespace edgerunner::test
