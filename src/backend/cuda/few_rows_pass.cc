#include "backend/cuda/few_rows_pass.h"

#include <algorithm>
#include <array>

#include "backend/cuda/cached_attention.h"
#include "backend/cuda/ops.h"
#include "backend/cuda/prefill_ops.h"

namespace edgerunner::cuda {
namespace {

std::uint32_t rows_of(const ExecutorOptions& options) {
  return std::min(options.max_rows, kMostFewRows);
}

bool stackable(const DeviceMatrix& a, const DeviceMatrix& b) {
  return a.type == b.type && a.cols == b.cols;
}

}  // namespace

bool FewRowsPass::supports(const DeviceWeights& weights) {
  const auto known = [](const DeviceMatrix& matrix) {
    return few_rows_supports(matrix.type) && matrix.cols <= kMostFewRowsCols;
  };
  return known(weights.head()) &&
         std::all_of(weights.layers().begin(), weights.layers().end(), [&](const DeviceLayer& w) {
           return known(w.q) && known(w.k) && known(w.v) && known(w.o) && known(w.gate) &&
                  known(w.up) && known(w.down);
         });
}

std::uint64_t FewRowsPass::bytes(const DecoderSpec& spec, const ExecutorOptions& options) {
  const Widths w(spec);
  const std::uint32_t widest =
      std::max({w.dim, w.qkv_row, 2 * w.ffn, std::min(w.vocab, kMostOutputs)});
  return partial_floats(rows_of(options), widest) * sizeof(float);
}

FewRowsPass::FewRowsPass(const PassContext& context, const ExecutorOptions& options,
                         const DeviceProperties& device)
    : c_(context),
      blocks_(few_rows_blocks(device.multiprocessors)),
      most_rows_(std::min(rows_of(options), most_few_rows(device.shared_bytes_per_block))),
      parts_(bytes(context.spec, options)) {}

void FewRowsPass::run(const DeviceBatch& rows, std::uint32_t wanted, cudaStream_t stream) const {
  launch_norm_to_half(c_.scratch.x.as<float>(), c_.weights.layers().front().attention_norm,
                      c_.spec.norm_epsilon, rows.rows, c_.spec.dim, c_.half.rows(), stream);
  c_.timer.lap(Operation::attention_norm, stream);
  for (std::size_t layer = 0; layer < c_.spec.layers.size(); ++layer) {
    attention(layer, rows, stream);
    feed_forward(layer, rows.rows, stream);
  }
  if (wanted != 0) head(wanted, stream);
}

PartialProduct FewRowsPass::multiply(const StackedMatrices& w, std::uint32_t outputs,
                                     std::uint32_t rows, cudaStream_t stream) const {
  return launch_matmul_rows(w, c_.half.rows(), rows, outputs, blocks_, parts_.as<float>(), stream);
}

PartialProduct FewRowsPass::multiply(const DeviceMatrix& w, std::uint32_t rows,
                                     cudaStream_t stream) const {
  return multiply({{w}, 1, w.rows, 0}, w.rows, rows, stream);
}

void FewRowsPass::project(std::span<const Projection> projections, std::uint32_t rows, float* y,
                          std::uint32_t y_stride, cudaStream_t stream) const {
  while (!projections.empty()) {
    StackedMatrices stack;
    StackedBias bias;
    while (stack.count < projections.size() &&
           stackable(*projections[stack.count].matrix, *projections[0].matrix)) {
      const Projection& next = projections[stack.count];
      stack.part[stack.count] = *next.matrix;
      stack.outputs += next.matrix->rows;
      bias.part[stack.count] = next.bias;
      bias.end[stack.count] = stack.outputs;
      ++stack.count;
    }
    launch_collect(multiply(stack, stack.outputs, rows, stream), bias, rows, stack.outputs, y,
                   y_stride, stream);
    y += stack.outputs;
    projections = projections.subspan(stack.count);
  }
}

void FewRowsPass::attention(std::size_t index, const DeviceBatch& rows, cudaStream_t stream) const {
  const DeviceLayer& w = c_.weights.layers()[index];
  const AttentionShape shape = attention_shape(c_.spec.layers[index]);
  float* const qkv = c_.scratch.qkv.as<float>();
  const std::array<Projection, 3> projections = {
      {{&w.q, w.q_bias}, {&w.k, w.k_bias}, {&w.v, w.v_bias}}};
  project(projections, rows.rows, qkv, shape.row(), stream);
  c_.timer.lap(Operation::qkv, stream);
  attend_cached(c_, index, rows, stream);
  launch_add_and_norm(multiply(w.o, rows.rows, stream), w.o_bias, rows.rows, c_.spec.dim,
                      c_.scratch.x.as<float>(), w.feed_forward_norm, c_.spec.norm_epsilon,
                      c_.half.rows(), stream);
  c_.timer.lap(Operation::attention_output, stream);
}

void FewRowsPass::feed_forward(std::size_t index, std::uint32_t rows, cudaStream_t stream) const {
  const DeviceLayer& w = c_.weights.layers()[index];
  const std::uint32_t ffn = c_.spec.layers[index].ffn_dim;
  if (stackable(w.gate, w.up)) {
    const StackedMatrices both = {{w.gate, w.up}, 2, 2 * ffn, 0};
    launch_silu_parts(multiply(both, 2 * ffn, rows, stream), w.gate_bias, w.up_bias, rows, ffn,
                      c_.half.rows(), stream);
  } else {
    float* const gate = c_.scratch.gate.as<float>();
    float* const up = c_.scratch.up.as<float>();
    const Projection of_gate{&w.gate, w.gate_bias};
    const Projection of_up{&w.up, w.up_bias};
    project({&of_gate, 1}, rows, gate, ffn, stream);
    project({&of_up, 1}, rows, up, ffn, stream);
    launch_silu_to_half(gate, up, rows, ffn, c_.half.rows(), stream);
  }
  c_.timer.lap(Operation::gate_up, stream);
  // The next layer's norm follows at once.
  const bool last = index + 1 == c_.spec.layers.size();
  launch_add_and_norm(multiply(w.down, rows, stream), w.down_bias, rows, c_.spec.dim,
                      c_.scratch.x.as<float>(),
                      last ? nullptr : c_.weights.layers()[index + 1].attention_norm,
                      c_.spec.norm_epsilon, c_.half.rows(), stream);
  c_.timer.lap(Operation::down, stream);
}

void FewRowsPass::head(std::uint32_t wanted, cudaStream_t stream) const {
  float* const normed = c_.scratch.normed.as<float>();
  launch_rms_norm(c_.scratch.x.as<float>(), c_.weights.output_norm(), c_.spec.norm_epsilon, wanted,
                  c_.spec.dim, c_.upload.logit_rows(), normed, stream);
  launch_to_half(normed, wanted, c_.spec.dim, c_.half.rows(), stream);
  const DeviceMatrix& w = c_.weights.head();
  for (std::uint32_t first = 0; first < w.rows; first += kMostOutputs) {
    const std::uint32_t outputs = std::min(kMostOutputs, w.rows - first);
    launch_collect(multiply({{w}, 1, w.rows, first}, outputs, wanted, stream), {}, wanted, outputs,
                   c_.scratch.logits.as<float>() + first, w.rows, stream);
  }
  c_.timer.lap(Operation::head, stream);
}

}  // namespace edgerunner::cuda
