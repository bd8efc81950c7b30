#include "backend/cuda/half_pass.h"

#include <algorithm>

#include "backend/cuda/cached_attention.h"
#include "backend/cuda/ops.h"
#include "backend/cuda/prefill_ops.h"

namespace edgerunner::cuda {

void HalfPass::run(const DeviceBatch& rows, std::uint32_t wanted, cudaStream_t stream) const {
  for (std::size_t layer = 0; layer < c_.spec.layers.size(); ++layer) {
    attention(layer, rows, stream);
    feed_forward(layer, rows.rows, stream);
  }
  if (wanted != 0) head(wanted, stream);
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
  auto* const unpacked = c_.half.w.as<__half>();
  // Even, so that every part begins at an even output.
  const auto part = static_cast<std::uint32_t>(c_.half.weight_values / w.cols) & ~1U;
  for (std::uint32_t first = 0; first < w.rows; first += part) {
    const std::uint32_t count = std::min(part, w.rows - first);
    launch_dequantize_to_half(w, first, count, unpacked, stream);
    HalfMatmul m;
    m.x = c_.half.rows();
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
    auto* const unpacked = c_.half.w.as<__half>();
    std::uint32_t outputs = 0;
    for (const DeviceMatrix* matrix : {&w.q, &w.k, &w.v}) {
      launch_dequantize_to_half(*matrix, 0, matrix->rows,
                                unpacked + std::size_t{outputs} * matrix->cols, stream);
      outputs += matrix->rows;
    }
    HalfMatmul m;
    m.x = c_.half.rows();
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

void HalfPass::attention(std::size_t index, const DeviceBatch& rows, cudaStream_t stream) const {
  const DeviceLayer& w = c_.weights.layers()[index];
  launch_norm_to_half(c_.scratch.x.as<float>(), w.attention_norm, c_.spec.norm_epsilon, rows.rows,
                      c_.spec.dim, c_.half.rows(), stream);
  c_.timer.lap(Operation::attention_norm, stream);
  project(w, attention_shape(c_.spec.layers[index]).row(), rows.rows, stream);
  c_.timer.lap(Operation::qkv, stream);
  attend_cached(c_, index, rows, stream);
  multiply(w.o, w.o_bias, c_.scratch.x.as<float>(), c_.spec.dim, rows.rows, true, stream);
  c_.timer.lap(Operation::attention_output, stream);
}

void HalfPass::feed_forward(std::size_t index, std::uint32_t rows, cudaStream_t stream) const {
  const DeviceLayer& w = c_.weights.layers()[index];
  const std::uint32_t ffn = c_.spec.layers[index].ffn_dim;
  float* const gate = c_.scratch.gate.as<float>();
  launch_norm_to_half(c_.scratch.x.as<float>(), w.feed_forward_norm, c_.spec.norm_epsilon, rows,
                      c_.spec.dim, c_.half.rows(), stream);
  c_.timer.lap(Operation::ffn_norm, stream);
  if (wgmma_) {
    auto* const unpacked = c_.half.w.as<__half>();
    launch_dequantize_to_half(w.gate, 0, ffn, unpacked, stream);
    launch_dequantize_to_half(w.up, 0, ffn, unpacked + std::size_t{ffn} * c_.spec.dim, stream);
    HalfMatmul m;
    m.x = c_.half.rows();
    m.w = unpacked;
    m.rows = rows;
    m.outputs = ffn;
    m.cols = c_.spec.dim;
    m.bias = w.gate_bias;
    m.up_bias = w.up_bias;
    m.y = gate;
    m.y_stride = ffn;
    launch_gated_wgmma(m, stream);
    launch_to_half(gate, rows, ffn, c_.half.rows(), stream);
  } else {
    float* const up = c_.scratch.up.as<float>();
    multiply(w.gate, w.gate_bias, gate, ffn, rows, false, stream);
    multiply(w.up, w.up_bias, up, ffn, rows, false, stream);
    launch_silu_to_half(gate, up, rows, ffn, c_.half.rows(), stream);
  }
  c_.timer.lap(Operation::gate_up, stream);
  multiply(w.down, w.down_bias, c_.scratch.x.as<float>(), c_.spec.dim, rows, true, stream);
  c_.timer.lap(Operation::down, stream);
}

void HalfPass::head(std::uint32_t wanted, cudaStream_t stream) const {
  float* const normed = c_.scratch.normed.as<float>();
  float* const logits = c_.scratch.logits.as<float>();
  launch_rms_norm(c_.scratch.x.as<float>(), c_.weights.output_norm(), c_.spec.norm_epsilon, wanted,
                  c_.spec.dim, c_.upload.logit_rows(), normed, stream);
  // A few rows: reading the head as it stands is less work than unpacking it first.
  constexpr std::uint32_t kFewRows = 8;
  if (wanted <= kFewRows) {
    launch_matmul_f32(c_.weights.head(),
                      {normed, c_.spec.dim, logits, c_.spec.vocab_size, nullptr, wanted, false},
                      stream);
    c_.timer.lap(Operation::head, stream);
    return;
  }
  launch_to_half(normed, wanted, c_.spec.dim, c_.half.rows(), stream);
  multiply(c_.weights.head(), nullptr, logits, c_.spec.vocab_size, wanted, false, stream);
  c_.timer.lap(Operation::head, stream);
}

}  // namespace edgerunner::cuda
