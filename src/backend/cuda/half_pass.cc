#include "backend/cuda/half_pass.h"

#include <algorithm>

#include "backend/cuda/cached_attention.h"
#include "backend/cuda/ops.h"
#include "backend/cuda/prefill_ops.h"

namespace edgerunner::cuda {

void HalfPass::layers(const DeviceBatch& rows, cudaStream_t stream) const {
  for (std::size_t layer = 0; layer < c_.spec.layers.size(); ++layer) {
    attention(layer, rows, stream);
    feed_forward(layer, rows.rows, stream);
  }
}

void HalfPass::launch(const HalfMatmul& m, cudaStream_t stream) const {
  // The Hopper kernel writes its results in pairs.
  if (wgmma_ && m.outputs % 2 == 0 && m.y_stride % 2 == 0) {
    launch_matmul_wgmma(m, stream);
  } else {
    launch_matmul_half(m, stream);
  }
}

void HalfPass::multiply(const DeviceMatrix& w, const float* bias, float* y, std::uint32_t y_stride,
                        std::uint32_t rows, bool add, cudaStream_t stream) const {
  auto* const unpacked = c_.half->work.as<__half>();
  // Even, so that every part begins at an even output.
  const auto part = static_cast<std::uint32_t>(c_.half->weight_values / w.cols) & ~1U;
  for (std::uint32_t first = 0; first < w.rows; first += part) {
    const std::uint32_t count = std::min(part, w.rows - first);
    launch_dequantize_to_half(w, first, count, unpacked, stream);
    HalfMatmul m;
    m.x = c_.half->rows();
    m.w = unpacked;
    m.rows = rows;
    m.outputs = count;
    m.cols = w.cols;
    m.bias = bias == nullptr ? nullptr : bias + first;
    m.y = y + first;
    m.y_stride = y_stride;
    m.add = add;
    launch(m, stream);
  }
}

// Queries, keys and values in one product where they have no biases.
void HalfPass::project(const DeviceLayer& w, std::uint32_t y_stride, std::uint32_t rows,
                       cudaStream_t stream) const {
  float* const qkv = c_.scratch.qkv.as<float>();
  if (w.q_bias == nullptr && w.k_bias == nullptr && w.v_bias == nullptr) {
    auto* const unpacked = c_.half->work.as<__half>();
    std::uint32_t outputs = 0;
    for (const DeviceMatrix* matrix : {&w.q, &w.k, &w.v}) {
      launch_dequantize_to_half(*matrix, 0, matrix->rows,
                                unpacked + std::size_t{outputs} * matrix->cols, stream);
      outputs += matrix->rows;
    }
    HalfMatmul m;
    m.x = c_.half->rows();
    m.w = unpacked;
    m.rows = rows;
    m.outputs = outputs;
    m.cols = w.q.cols;
    m.y = qkv;
    m.y_stride = y_stride;
    launch(m, stream);
    return;
  }
  multiply(w.q, w.q_bias, qkv, y_stride, rows, false, stream);
  multiply(w.k, w.k_bias, qkv + w.q.rows, y_stride, rows, false, stream);
  multiply(w.v, w.v_bias, qkv + w.q.rows + w.k.rows, y_stride, rows, false, stream);
}

void HalfPass::add_block(std::size_t layer, const Projection& last, const Norm& post_norm,
                         std::uint32_t rows, cudaStream_t stream) const {
  const bool directly = c_.adds_directly(post_norm);
  float* const to = directly ? c_.scratch.x.as<float>() : c_.scratch.branch.as<float>();
  multiply(last.w, last.bias, to, c_.spec.dim, rows, directly, stream);
  c_.adapt_half(layer, last.target, rows, to, c_.spec.dim, stream);
  if (!directly) c_.add_branch(post_norm, rows, stream);
}

void HalfPass::attention(std::size_t index, const DeviceBatch& rows, cudaStream_t stream) const {
  const DeviceLayer& w = c_.weights.layers()[index];
  const BlockNorms& norms = c_.weights.norms()[index];
  launch_norm_to_half(norms.attention, c_.scratch.x.as<float>(), rows.rows, c_.spec.dim,
                      c_.half->rows(), stream);
  c_.timer.lap(Operation::attention_norm, stream);
  const AttentionShape shape = attention_shape(c_.spec.layers[index]);
  project(w, shape.row(), rows.rows, stream);
  c_.adapt_half_qkv(index, shape, rows.rows, stream);
  c_.timer.lap(Operation::qkv, stream);
  attend_cached(c_, index, rows, stream);
  add_block(index, {LoraTarget::o, w.o, w.o_bias}, norms.attention_post, rows.rows, stream);
  c_.timer.lap(Operation::attention_output, stream);
}

void HalfPass::feed_forward(std::size_t index, std::uint32_t rows, cudaStream_t stream) const {
  const DeviceLayer& w = c_.weights.layers()[index];
  const BlockNorms& norms = c_.weights.norms()[index];
  if (c_.spec.layers[index].mixture.count > 0) {
    c_.norm(norms.feed_forward, rows, nullptr, stream);
    c_.timer.lap(Operation::ffn_norm, stream);
    mixture(index, rows, stream);
    c_.add_branch(norms.feed_forward_post, rows, stream);
  } else {
    launch_norm_to_half(norms.feed_forward, c_.scratch.x.as<float>(), rows, c_.spec.dim,
                        c_.half->rows(), stream);
    c_.timer.lap(Operation::ffn_norm, stream);
    hidden(index, {LoraTarget::gate, w.gate, w.gate_bias}, {LoraTarget::up, w.up, w.up_bias}, rows,
           stream);
    c_.timer.lap(Operation::gate_up, stream);
    add_block(index, {LoraTarget::down, w.down, w.down_bias}, norms.feed_forward_post, rows,
              stream);
  }
  c_.timer.lap(Operation::down, stream);
}

void HalfPass::hidden(std::size_t layer, const Projection& gate, const Projection& up,
                      std::uint32_t rows, cudaStream_t stream) const {
  const std::uint32_t ffn = up.w.rows;
  if (wgmma_ && gate.w.rows > 0 && c_.spec.activation == Activation::silu &&
      !c_.adapters.change(layer, {gate.target, up.target})) {
    const HalfRows half = c_.half->rows();
    float* const gated = c_.scratch.gate.as<float>();
    auto* const unpacked = c_.half->work.as<__half>();
    launch_dequantize_to_half(gate.w, 0, ffn, unpacked, stream);
    launch_dequantize_to_half(up.w, 0, ffn, unpacked + std::size_t{ffn} * c_.spec.dim, stream);
    HalfMatmul m;
    m.x = half;
    m.w = unpacked;
    m.rows = rows;
    m.outputs = ffn;
    m.cols = c_.spec.dim;
    m.bias = gate.bias;
    m.up_bias = up.bias;
    m.y = gated;
    m.y_stride = ffn;
    launch_gated_wgmma(m, stream);
    launch_to_half(gated, rows, ffn, half, stream);
    return;
  }
  launch_hidden_apart(
      c_, layer, gate, up, rows,
      [&](const Projection& p, float* y) { multiply(p.w, p.bias, y, ffn, rows, false, stream); },
      stream);
}

void HalfPass::mixture(std::size_t index, std::uint32_t rows, cudaStream_t stream) const {
  const DeviceMixture& w = c_.weights.mixtures()[index];
  const auto take_normed = [&] {
    launch_to_half(c_.scratch.normed.as<float>(), rows, c_.spec.dim, c_.half->rows(), stream);
  };
  take_normed();
  if (w.shared_up.rows > 0) {
    hidden(index, {LoraTarget::gate, w.shared_gate, nullptr},
           {LoraTarget::up, w.shared_up, nullptr}, rows, stream);
    multiply(w.shared_down, nullptr, c_.scratch.branch.as<float>(), c_.spec.dim, rows, false,
             stream);
    take_normed();
  }
  mix_half(c_, index, rows, stream);
}

void HalfPass::head(std::uint32_t wanted, cudaStream_t stream) const {
  c_.norm(c_.weights.final_norm(), wanted, c_.upload.logit_rows(), stream);
  const float* const normed = c_.scratch.normed.as<float>();
  float* const logits = c_.scratch.logits.as<float>();
  // A few rows: reading the head as it stands is less work than unpacking it first.
  constexpr std::uint32_t kFewRows = 8;
  if (wanted <= kFewRows) {
    launch_matmul_f32(c_.weights.head(),
                      {normed, c_.spec.dim, logits, c_.spec.vocab_size, nullptr, wanted, false},
                      stream);
  } else {
    launch_to_half(normed, wanted, c_.spec.dim, c_.half->rows(), stream);
    multiply(c_.weights.head(), nullptr, logits, c_.spec.vocab_size, wanted, false, stream);
  }
  c_.finish_logits(wanted, stream);
  c_.timer.lap(Operation::head, stream);
}

}  // namespace edgerunner::cuda
