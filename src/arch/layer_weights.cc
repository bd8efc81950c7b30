#include <fmt/format.h>

#include <algorithm>

#include "arch/family.h"

namespace edgerunner {
namespace {

// No mixture of a real model comes near; keeps count * ffn_dim far from overflow.
constexpr std::uint32_t kMaxExperts = 1U << 12;

// Reads the tensors of one layer.
class LayerReader {
 public:
  LayerReader(const Metadata& metadata, TensorReader& tensors, std::uint32_t index,
              std::uint32_t dim, const FamilyTraits& traits)
      : metadata_(metadata), tensors_(tensors), index_(index), dim_(dim), traits_(traits) {}

  AttentionWeights attention(const LayerSpec& layer) {
    const std::uint32_t q_dim = layer.heads * layer.head_dim;
    const std::uint32_t kv_dim = layer.kv_heads * layer.head_dim;
    AttentionWeights w;
    if (traits_.pre_norm) w.norm = vector("attn_norm.weight", dim_);
    if (traits_.norm == NormKind::layer) w.norm_bias = vector("attn_norm.bias", dim_);
    if (traits_.post_norm) w.post_norm = vector("post_attention_norm.weight", dim_);
    if (traits_.fused) {
      const Matrix fused = matrix("attn_qkv.weight", q_dim + 2 * kv_dim, dim_);
      w.q = fused.row_range(0, q_dim);
      w.k = fused.row_range(q_dim, kv_dim);
      w.v = fused.row_range(q_dim + kv_dim, kv_dim);
    } else {
      w.q = matrix("attn_q.weight", q_dim, dim_);
      w.k = matrix("attn_k.weight", kv_dim, dim_);
      w.v = matrix("attn_v.weight", kv_dim, dim_);
    }
    w.o = matrix("attn_output.weight", dim_, q_dim);
    w.q_bias = optional_vector("attn_q.bias", q_dim);
    w.k_bias = optional_vector("attn_k.bias", kv_dim);
    w.v_bias = optional_vector("attn_v.bias", kv_dim);
    w.o_bias = optional_vector("attn_output.bias", dim_);
    if (traits_.qk_norm != QkNorm::none) {
      const bool whole = traits_.qk_norm == QkNorm::whole_row;
      w.q_norm = vector("attn_q_norm.weight", whole ? q_dim : layer.head_dim);
      w.k_norm = vector("attn_k_norm.weight", whole ? kv_dim : layer.head_dim);
    }
    return w;
  }

  FeedForwardWeights feed_forward(LayerSpec& layer) {
    FeedForwardWeights w;
    if (traits_.pre_norm) w.norm = vector("ffn_norm.weight", dim_);
    if (traits_.norm == NormKind::layer) w.norm_bias = vector("ffn_norm.bias", dim_);
    if (traits_.post_norm) w.post_norm = vector("post_ffw_norm.weight", dim_);
    if (tensors_.has(name("ffn_gate_inp.weight"))) {
      layer.mixture = mixture_spec();
      w.mixture = mixture(layer.mixture);
    } else {
      dense(layer, w);
    }
    return w;
  }

 private:
  void dense(const LayerSpec& layer, FeedForwardWeights& w) {
    if (traits_.fused) {
      const Matrix fused = matrix("ffn_up.weight", 2 * layer.ffn_dim, dim_);
      w.gate = fused.row_range(0, layer.ffn_dim);
      w.up = fused.row_range(layer.ffn_dim, layer.ffn_dim);
    } else {
      if (traits_.gated) w.gate = matrix("ffn_gate.weight", layer.ffn_dim, dim_);
      w.up = matrix("ffn_up.weight", layer.ffn_dim, dim_);
    }
    w.down = matrix("ffn_down.weight", dim_, layer.ffn_dim);
    if (traits_.gated) w.gate_bias = optional_vector("ffn_gate.bias", layer.ffn_dim);
    w.up_bias = optional_vector("ffn_up.bias", layer.ffn_dim);
    w.down_bias = optional_vector("ffn_down.bias", dim_);
  }

  MixtureSpec mixture_spec() const {
    MixtureSpec spec;
    spec.count = metadata_.uint("expert_count");
    spec.used = metadata_.uint("expert_used_count");
    if (spec.count > kMaxExperts) {
      metadata_.refuse("expert_count", fmt::format("is {}, which no model has", spec.count));
    }
    if (spec.used > spec.count) {
      metadata_.refuse("expert_used_count",
                       fmt::format("is {}, but there are {} experts", spec.used, spec.count));
    }
    const auto expert_ffn = metadata_.find_uint("expert_feed_forward_length");
    spec.ffn_dim = bounded("expert_feed_forward_length",
                           expert_ffn ? *expert_ffn : metadata_.uint("feed_forward_length"));
    if (tensors_.has(name("ffn_gate_shexp.weight"))) {
      spec.shared_ffn_dim = bounded("expert_shared_feed_forward_length",
                                    metadata_.uint("expert_shared_feed_forward_length"));
    }
    spec.normalised = traits_.normalised_experts;
    return spec;
  }

  // Lengths whose product with kMaxExperts stays within 32 bits.
  std::uint32_t bounded(std::string_view key, std::uint32_t value) const {
    if (value == 0 || value > (1U << 19)) {
      metadata_.refuse(key, fmt::format("is {}, which no expert has", value));
    }
    return value;
  }

  MixtureWeights mixture(const MixtureSpec& spec) {
    MixtureWeights w;
    w.router = matrix("ffn_gate_inp.weight", spec.count, dim_);
    w.gate = experts("ffn_gate_exps.weight", spec.count, spec.ffn_dim, dim_);
    w.up = experts("ffn_up_exps.weight", spec.count, spec.ffn_dim, dim_);
    w.down = experts("ffn_down_exps.weight", spec.count, dim_, spec.ffn_dim);
    if (spec.shared_ffn_dim > 0) {
      w.shared_gate = matrix("ffn_gate_shexp.weight", spec.shared_ffn_dim, dim_);
      w.shared_up = matrix("ffn_up_shexp.weight", spec.shared_ffn_dim, dim_);
      w.shared_down = matrix("ffn_down_shexp.weight", dim_, spec.shared_ffn_dim);
      w.shared_router = matrix("ffn_gate_inp_shexp.weight", 1, dim_);
    }
    return w;
  }

  std::string name(std::string_view role) const { return fmt::format("blk.{}.{}", index_, role); }
  Matrix matrix(std::string_view role, std::uint32_t rows, std::uint32_t cols) {
    return tensors_.matrix(name(role), rows, cols);
  }
  Matrix experts(std::string_view role, std::uint32_t count, std::uint32_t rows,
                 std::uint32_t cols) {
    return tensors_.matrices(name(role), count, rows, cols);
  }
  Vector vector(std::string_view role, std::uint32_t length) {
    return tensors_.vector(name(role), length);
  }
  Vector optional_vector(std::string_view role, std::uint32_t length) {
    return tensors_.optional_vector(name(role), length);
  }

  const Metadata& metadata_;
  TensorReader& tensors_;
  std::uint32_t index_;
  std::uint32_t dim_;
  const FamilyTraits& traits_;
};

}  // namespace

LayerWeights read_layer_weights(const Metadata& metadata, TensorReader& tensors,
                                std::uint32_t index, LayerSpec& layer, std::uint32_t dim,
                                const FamilyTraits& traits) {
  LayerReader reader(metadata, tensors, index, dim, traits);
  AttentionWeights attention = reader.attention(layer);
  return {std::move(attention), reader.feed_forward(layer)};
}

}  // namespace edgerunner
