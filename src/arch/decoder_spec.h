#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace edgerunner {

// The largest head that any backend's attention holds in registers and on its stack.
inline constexpr std::uint32_t kMaxHeadDim = 256;

// How the two halves of a rotated pair lie in a head: neighbours (x0,x1), as GGUF's converter
// permutes the Llama family, or half a head apart (x0,x[d/2]), as Qwen's and GPT-NeoX's.
enum class RopeLayout { interleaved, half_split };

// Rotary position embedding (Su et al. 2021), resolved at load: pair i at position p turns by
// p * inverse_frequencies[i]; cosine and sine are then multiplied by `magnitude` (YaRN; else 1).
// All scalings (linear, YaRN, Llama-3.1 factors) are folded into these two.
struct RopeSpec {
  RopeLayout layout = RopeLayout::interleaved;
  std::vector<double> inverse_frequencies;  // [rotated dimensions / 2]
  double magnitude = 1.0;

  // LongRoPE (Ding et al. 2024): other frequencies where more than `long_context` positions are
  // allotted. Chosen once at load and not by a prompt's length, as the keys that the cache already
  // holds could not be turned anew. Empty in other models.
  std::vector<double> long_inverse_frequencies;  // [rotated dimensions / 2], or empty
  std::uint32_t long_context = 0;

  // The frequencies for a model that is loaded for `max_context` positions.
  std::span<const double> frequencies(std::uint32_t max_context) const {
    const bool beyond = !long_inverse_frequencies.empty() && max_context > long_context;
    return beyond ? long_inverse_frequencies : inverse_frequencies;
  }
};

// Which of the decoder's rotations a layer applies to queries and keys.
enum class LayerRope { main, local, none };

// What a feed-forward network applies to its gate (SwiGLU, GeGLU), or to its only product where it
// has none: silu, or the tanh approximation of gelu.
enum class Activation { silu, gelu_tanh };

// How the residual stream is normed: RMSNorm (Zhang and Sennrich 2019), or LayerNorm (Ba et al.
// 2016), which subtracts the mean first and adds a bias last. Queries and keys have RMSNorm alone.
enum class NormKind { rms, layer };

// A mixture of experts in place of a dense feed-forward network: of `count` experts the `used`
// with the highest router probability (softmax over all) are added up by that probability.
struct MixtureSpec {
  std::uint32_t count = 0;  // 0: the layer is dense
  std::uint32_t used = 0;
  std::uint32_t ffn_dim = 0;         // of each expert
  std::uint32_t shared_ffn_dim = 0;  // of the expert that every token goes through; 0: none
  bool normalised = false;           // the chosen probabilities are divided by their sum
};

// One transformer block. Shapes are stated here; the tensors stand in Weights.
struct LayerSpec {
  std::uint32_t heads = 0;     // query heads
  std::uint32_t kv_heads = 0;  // divides heads
  std::uint32_t head_dim = 0;  // of queries, keys and values
  std::uint32_t ffn_dim = 0;   // rows of gate and up; unused where the layer is a mixture
  std::uint32_t sliding_window =
      0;                      // a query sees itself and the window-1 tokens before it; 0: all
  float attention_scale = 0;  // multiplies q.k; 1/sqrt(head_dim) unless the family says otherwise
  float attention_cap = 0;    // scores become cap * tanh(score / cap); 0: they stay
  LayerRope rope = LayerRope::main;
  MixtureSpec mixture;
};

// A decoder as data: what to run, for any backend. Immutable after load.
struct DecoderSpec {
  std::string architecture;          // general.architecture
  std::string name;                  // general.name, or empty
  std::uint32_t dim = 0;             // embedding length
  std::uint32_t vocab_size = 0;      // rows of the embedding and of the head
  std::uint32_t context_length = 0;  // that the model was trained for
  NormKind norm = NormKind::rms;
  float norm_epsilon = 0;
  RopeSpec rope;
  RopeSpec local_rope;  // of layers that say so (LayerRope::local)
  Activation activation = Activation::silu;
  bool post_norms = false;    // blocks' outputs are normed before they are added
  float embedding_scale = 1;  // multiplies the rows of the embedding
  float residual_scale = 1;   // multiplies what a block adds to the residual stream
  float logit_scale = 1;      // multiplies the logits
  float logit_cap = 0;        // then logits become cap * tanh(logit / cap); 0: they stay
  std::vector<LayerSpec> layers;

  // The window that every layer has in common, or 0: pages behind it may be recycled.
  std::uint32_t common_window() const {
    std::uint32_t window = 0;
    for (const LayerSpec& layer : layers) {
      if (layer.sliding_window == 0) return 0;
      if (layer.sliding_window > window) window = layer.sliding_window;
    }
    return window;
  }
};

}  // namespace edgerunner
