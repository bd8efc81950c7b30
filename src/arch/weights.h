#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tensor/element_type.h"

namespace edgerunner {

// A weight matrix in the mapped file, y[rows] = W[rows, cols] x[cols]. Row r's blocks begin at
// data + r * row_bytes(type, cols); no alignment beyond the file's can be assumed for a row.
struct Matrix {
  std::string_view name;  // the tensor's, for messages and profiles
  ElementType type = ElementType::f32;
  std::uint32_t rows = 0;           // outputs
  std::uint32_t cols = 0;           // inputs, a multiple of the type's block length
  std::span<const std::byte> data;  // [rows, cols] blocks

  bool empty() const { return rows == 0; }
};

// A norm's weight or a bias, small enough to be held as f32. Empty where the model has none.
using Vector = std::vector<float>;

struct AttentionWeights {
  Vector norm;    // [dim]
  Matrix q;       // [heads * head_dim, dim]
  Matrix k;       // [kv_heads * head_dim, dim]
  Matrix v;       // [kv_heads * head_dim, dim]
  Matrix o;       // [dim, heads * head_dim]
  Vector q_bias;  // [heads * head_dim], or empty
  Vector k_bias;  // [kv_heads * head_dim], or empty
  Vector v_bias;  // [kv_heads * head_dim], or empty
  Vector o_bias;  // [dim], or empty
  Vector q_norm;  // [head_dim], RMSNorm of each query head before RoPE, or empty
  Vector k_norm;  // [head_dim], the same for key heads, or empty
};

// down(silu(gate(x)) * up(x)).
struct FeedForwardWeights {
  Vector norm;       // [dim]
  Matrix gate;       // [ffn_dim, dim]
  Matrix up;         // [ffn_dim, dim]
  Matrix down;       // [dim, ffn_dim]
  Vector gate_bias;  // [ffn_dim], or empty
  Vector up_bias;    // [ffn_dim], or empty
  Vector down_bias;  // [dim], or empty
};

struct LayerWeights {
  AttentionWeights attention;
  FeedForwardWeights feed_forward;
};

// Every tensor of a decoder by its role; views into the file, which must outlive it.
struct Weights {
  Matrix embedding;  // [vocab, dim]
  std::vector<LayerWeights> layers;
  Vector output_norm;  // [dim]
  Matrix head;         // [vocab, dim]; the embedding itself where the head is tied
};

}  // namespace edgerunner
