#include "backend/cuda/f32_pass.h"

#include "backend/cuda/cached_attention.h"
#include "backend/cuda/ops.h"

namespace edgerunner::cuda {

void F32Pass::layers(const DeviceBatch& rows, cudaStream_t stream) const {
  for (std::size_t layer = 0; layer < c_.spec.layers.size(); ++layer) {
    attention(layer, rows, stream);
    feed_forward(layer, rows.rows, stream);
  }
}

const float* F32Pass::normed(const Norm& norm, std::uint32_t rows, cudaStream_t stream) const {
  if (norm.weight == nullptr) return c_.scratch.x.as<float>();
  c_.norm(norm, rows, nullptr, stream);
  return c_.scratch.normed.as<float>();
}

void F32Pass::multiply(const Product& product, std::uint32_t rows, float* y, std::uint32_t y_stride,
                       bool add, cudaStream_t stream) const {
  launch_matmul_f32(product.w, {product.x, product.w.cols, y, y_stride, product.bias, rows, add},
                    stream);
  c_.adapt(product.layer, product.target, {product.x, {}}, rows, y, y_stride, stream);
}

void F32Pass::add_block(const Product& product, const Norm& post_norm, std::uint32_t rows,
                        cudaStream_t stream) const {
  const bool directly = c_.adds_directly(post_norm);
  float* const to = directly ? c_.scratch.x.as<float>() : c_.scratch.branch.as<float>();
  multiply(product, rows, to, c_.spec.dim, directly, stream);
  if (!directly) c_.add_branch(post_norm, rows, stream);
}

void F32Pass::attention(std::size_t index, const DeviceBatch& rows, cudaStream_t stream) const {
  const DeviceLayer& w = c_.weights.layers()[index];
  const BlockNorms& norms = c_.weights.norms()[index];
  const AttentionShape shape = attention_shape(c_.spec.layers[index]);
  float* const qkv = c_.scratch.qkv.as<float>();
  float* const attended = c_.scratch.attended.as<float>();
  const float* const x = normed(norms.attention, rows.rows, stream);
  c_.timer.lap(Operation::attention_norm, stream);
  const auto project = [&](LoraTarget target, const DeviceMatrix& matrix, const float* bias,
                           std::uint32_t at) {
    multiply({index, target, matrix, bias, x}, rows.rows, qkv + at, shape.row(), false, stream);
  };
  project(LoraTarget::q, w.q, w.q_bias, 0);
  project(LoraTarget::k, w.k, w.k_bias, shape.q_dim());
  project(LoraTarget::v, w.v, w.v_bias, shape.q_dim() + shape.kv_dim());
  c_.timer.lap(Operation::qkv, stream);
  rotate_and_cache(c_, index, rows, stream);
  launch_attention_f32(shape, rows, qkv, c_.cache.layer(index), attended, stream);
  c_.timer.lap(Operation::attention, stream);
  add_block({index, LoraTarget::o, w.o, w.o_bias, attended}, norms.attention_post, rows.rows,
            stream);
  c_.timer.lap(Operation::attention_output, stream);
}

void F32Pass::feed_forward(std::size_t index, std::uint32_t rows, cudaStream_t stream) const {
  const DeviceLayer& w = c_.weights.layers()[index];
  const BlockNorms& norms = c_.weights.norms()[index];
  if (c_.spec.layers[index].mixture.count > 0) {
    c_.norm(norms.feed_forward, rows, nullptr, stream);
    c_.timer.lap(Operation::ffn_norm, stream);
    mixture(index, rows, stream);
    c_.add_branch(norms.feed_forward_post, rows, stream);
    c_.timer.lap(Operation::down, stream);
    return;
  }
  const float* const x = normed(norms.feed_forward, rows, stream);
  c_.timer.lap(Operation::ffn_norm, stream);
  const std::uint32_t ffn = w.up.rows;
  float* const gate = c_.scratch.gate.as<float>();
  float* const up = c_.scratch.up.as<float>();
  const bool gated = w.gate.rows > 0;
  multiply({index, LoraTarget::up, w.up, w.up_bias, x}, rows, up, ffn, false, stream);
  if (gated) {
    multiply({index, LoraTarget::gate, w.gate, w.gate_bias, x}, rows, gate, ffn, false, stream);
  }
  float* const hidden = gated ? gate : up;
  launch_activate(c_.spec.activation, hidden, gated ? up : nullptr, std::uint64_t{rows} * ffn,
                  stream);
  c_.timer.lap(Operation::gate_up, stream);
  add_block({index, LoraTarget::down, w.down, w.down_bias, hidden}, norms.feed_forward_post, rows,
            stream);
  c_.timer.lap(Operation::down, stream);
}

void F32Pass::mixture(std::size_t index, std::uint32_t rows, cudaStream_t stream) const {
  const DeviceMixture& w = c_.weights.mixtures()[index];
  const float* const x = c_.scratch.normed.as<float>();
  if (const std::uint32_t ffn = w.shared_up.rows; ffn > 0) {
    float* const gate = c_.scratch.gate.as<float>();
    float* const up = c_.scratch.up.as<float>();
    launch_matmul_f32(w.shared_gate, {x, c_.spec.dim, gate, ffn, nullptr, rows, false}, stream);
    launch_matmul_f32(w.shared_up, {x, c_.spec.dim, up, ffn, nullptr, rows, false}, stream);
    launch_activate(c_.spec.activation, gate, up, std::uint64_t{rows} * ffn, stream);
    launch_matmul_f32(w.shared_down,
                      {gate, ffn, c_.scratch.branch.as<float>(), c_.spec.dim, nullptr, rows, false},
                      stream);
  }
  mix_f32(c_, index, rows, stream);
}

void F32Pass::head(std::uint32_t wanted, cudaStream_t stream) const {
  c_.norm(c_.weights.final_norm(), wanted, c_.upload.logit_rows(), stream);
  launch_matmul_f32(c_.weights.head(),
                    {c_.scratch.normed.as<float>(), c_.spec.dim, c_.scratch.logits.as<float>(),
                     c_.spec.vocab_size, nullptr, wanted, false},
                    stream);
  c_.finish_logits(wanted, stream);
  c_.timer.lap(Operation::head, stream);
}

}  // namespace edgerunner::cuda
