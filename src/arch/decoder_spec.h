#pragma once

#include <cstdint>
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
};

// One transformer block. Shapes are stated here; the tensors stand in Weights.
struct LayerSpec {
  std::uint32_t heads = 0;     // query heads
  std::uint32_t kv_heads = 0;  // divides heads
  std::uint32_t head_dim = 0;  // of queries, keys and values
  std::uint32_t ffn_dim = 0;   // rows of gate and up (SwiGLU)
  std::uint32_t sliding_window =
      0;                      // a query sees itself and the window-1 tokens before it; 0: all
  float attention_scale = 0;  // multiplies q.k; 1/sqrt(head_dim) unless the family says otherwise
};

// A decoder as data: what to run, for any backend. Immutable after load.
struct DecoderSpec {
  std::string architecture;          // general.architecture
  std::string name;                  // general.name, or empty
  std::uint32_t dim = 0;             // embedding length
  std::uint32_t vocab_size = 0;      // rows of the embedding and of the head
  std::uint32_t context_length = 0;  // that the model was trained for
  float norm_epsilon = 0;            // RMSNorm
  RopeSpec rope;
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
