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

  // The part [first, first + count) of the rows.
  Matrix row_range(std::uint32_t first, std::uint32_t count) const {
    const std::size_t stride = row_bytes(type, cols);
    return {name, type, count, cols, data.subspan(first * stride, count * stride)};
  }
};

// A norm's weight or a bias, small enough to be held as f32. Empty where the model has none.
using Vector = std::vector<float>;

struct AttentionWeights {
  Vector norm;       // [dim], or empty: the block reads the residual stream as it is
  Vector norm_bias;  // [dim] with NormKind::layer, else empty
  Matrix q;          // [heads * head_dim, dim]
  Matrix k;          // [kv_heads * head_dim, dim]
  Matrix v;          // [kv_heads * head_dim, dim]
  Matrix o;          // [dim, heads * head_dim]
  Vector q_bias;     // [heads * head_dim], or empty
  Vector k_bias;     // [kv_heads * head_dim], or empty
  Vector v_bias;     // [kv_heads * head_dim], or empty
  Vector o_bias;     // [dim], or empty
  Vector q_norm;     // RMSNorm of queries before RoPE: [head_dim], of each head, or [heads *
                     // head_dim], of all heads as one row, or empty
  Vector k_norm;     // the same for keys
  Vector post_norm;  // [dim], of the block's output before it is added, or empty
};

// Experts stand one after another in one matrix, as their tensors do in the file.
struct MixtureWeights {
  Matrix router;         // [count, dim]
  Matrix gate;           // [count * ffn_dim, dim]
  Matrix up;             // [count * ffn_dim, dim]
  Matrix down;           // [count * dim, ffn_dim]
  Matrix shared_gate;    // [shared_ffn_dim, dim], or empty
  Matrix shared_up;      // [shared_ffn_dim, dim]
  Matrix shared_down;    // [dim, shared_ffn_dim]
  Matrix shared_router;  // [1, dim]: the shared expert's output is multiplied by its sigmoid
};

// down(activation(gate(x)) * up(x)), or down(activation(up(x))) where there is no gate.
struct FeedForwardWeights {
  Vector norm;             // [dim], or empty
  Vector norm_bias;        // [dim] with NormKind::layer, else empty
  Matrix gate;             // [ffn_dim, dim], or empty
  Matrix up;               // [ffn_dim, dim]
  Matrix down;             // [dim, ffn_dim]
  Vector gate_bias;        // [ffn_dim], or empty
  Vector up_bias;          // [ffn_dim], or empty
  Vector down_bias;        // [dim], or empty
  Vector post_norm;        // [dim], of the block's output before it is added, or empty
  MixtureWeights mixture;  // in place of gate, up and down where LayerSpec::mixture.count > 0
};

struct LayerWeights {
  AttentionWeights attention;
  FeedForwardWeights feed_forward;
};

// Every tensor of a decoder by its role; views into the file, which must outlive it.
struct Weights {
  Matrix embedding;  // [vocab, dim]
  std::vector<LayerWeights> layers;
  Vector output_norm;       // [dim]
  Vector output_norm_bias;  // [dim] with NormKind::layer, else empty
  Matrix head;              // [vocab, dim]; the embedding itself where the head is tied
};

}  // namespace edgerunner
