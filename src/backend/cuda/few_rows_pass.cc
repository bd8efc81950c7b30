#include "backend/cuda/few_rows_pass.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "backend/cuda/cached_attention.h"
#include "backend/cuda/ops.h"
#include "backend/cuda/prefill_ops.h"

namespace edgerunner::cuda {
namespace {

// Whether b's rows go on where a's end.
bool stackable(const DeviceMatrix& a, const DeviceMatrix& b) {
  return a.type == b.type && a.cols == b.cols &&
         b.data == a.data + std::size_t{a.rows} * a.row_bytes;
}

}  // namespace

bool FewRowsPass::supports(const DeviceWeights& weights) {
  // Experts' matrices have products of their own.
  const auto known = [](std::initializer_list<const DeviceMatrix*> matrices) {
    return std::all_of(matrices.begin(), matrices.end(), [](const DeviceMatrix* matrix) {
      return matrix->rows == 0 ||
             (few_rows_supports(matrix->type) && matrix->cols <= kMostFewRowsCols);
    });
  };
  return known({&weights.head()}) &&
         std::all_of(weights.layers().begin(), weights.layers().end(),
                     [&](const DeviceLayer& w) {
                       return known({&w.q, &w.k, &w.v, &w.o, &w.gate, &w.up, &w.down});
                     }) &&
         std::all_of(weights.mixtures().begin(), weights.mixtures().end(),
                     [&](const DeviceMixture& w) {
                       return known({&w.shared_gate, &w.shared_up, &w.shared_down});
                     });
}

FewRowsPass::FewRowsPass(const PassContext& context, const ExecutorOptions& options,
                         const DeviceProperties& device)
    : c_(context),
      blocks_(few_rows_blocks(device.multiprocessors)),
      most_rows_(std::min(options.max_rows, most_few_rows())) {
  c_.order = ColumnOrder::operand;
}

void FewRowsPass::layers(const DeviceBatch& rows, cudaStream_t stream) const {
  apply({&c_.weights.norms().front().attention}, rows.rows, stream);
  c_.timer.lap(Operation::attention_norm, stream);
  for (std::size_t layer = 0; layer < c_.spec.layers.size(); ++layer) {
    attention(layer, rows, stream);
    feed_forward(layer, rows.rows, stream);
  }
}

void FewRowsPass::apply(const NextNorm& next, std::uint32_t rows, cudaStream_t stream) const {
  if (next.norm == nullptr) return;
  if (next.in_f32) {
    c_.norm(*next.norm, rows, nullptr, stream);
    launch_to_half(c_.scratch.normed.as<float>(), rows, c_.spec.dim, c_.half->rows(next.order),
                   stream);
  } else {
    launch_norm_to_half(*next.norm, c_.scratch.x.as<float>(), rows, c_.spec.dim,
                        c_.half->rows(next.order), stream);
  }
}

void FewRowsPass::add_branch(const Norm& post_norm, const NextNorm& next, std::uint32_t rows,
                             cudaStream_t stream) const {
  if (next.norm == nullptr || next.in_f32) {
    c_.add_branch(post_norm, rows, stream);
    apply(next, rows, stream);
  } else {
    launch_add_branch_to_half(c_.scratch.branch.as<float>(), post_norm, c_.spec.residual_scale,
                              rows, c_.spec.dim, c_.scratch.x.as<float>(), *next.norm,
                              c_.half->rows(next.order), stream);
  }
}

PartialProduct FewRowsPass::multiply(const StackedMatrices& w, std::uint32_t outputs,
                                     std::uint32_t rows, cudaStream_t stream) const {
  return launch_matmul_rows(w, c_.half_rows(), rows, outputs, blocks_, c_.half->work.as<float>(),
                            stream);
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
           (stack.count == 0 ||
            stackable(projections[stack.count - 1].w, projections[stack.count].w))) {
      const Projection& next = projections[stack.count];
      stack.part[stack.count] = next.w;
      stack.outputs += next.w.rows;
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

void FewRowsPass::add_block(std::size_t layer, const Projection& last, const Norm& post_norm,
                            const NextNorm& next, std::uint32_t rows, cudaStream_t stream) const {
  if (!c_.adds_directly(post_norm)) {
    float* const branch = c_.scratch.branch.as<float>();
    project({&last, 1}, rows, branch, c_.spec.dim, stream);
    c_.adapt_half(layer, last.target, rows, branch, c_.spec.dim, stream);
    add_branch(post_norm, next, rows, stream);
    return;
  }
  // An RMSNorm follows at once, in the same kernel. Adapters come before it: what they change is
  // the residual stream alone.
  c_.adapt_half(layer, last.target, rows, c_.scratch.x.as<float>(), c_.spec.dim, stream);
  const Norm* const norm = next.norm;
  const bool fused = norm != nullptr && norm->weight != nullptr && norm->bias == nullptr;
  launch_add_and_norm(multiply(last.w, rows, stream), last.bias, rows, c_.spec.dim,
                      c_.scratch.x.as<float>(), fused ? norm->weight : nullptr,
                      c_.spec.norm_epsilon, c_.half->rows(next.order),
                      next.in_f32 ? c_.scratch.normed.as<float>() : nullptr, stream);
  if (!fused) apply(next, rows, stream);
}

void FewRowsPass::queries(std::size_t index, const DeviceBatch& rows, cudaStream_t stream) const {
  const DeviceLayer& w = c_.weights.layers()[index];
  const BlockNorms& norms = c_.weights.norms()[index];
  const LayerSpec& spec = c_.spec.layers[index];
  const AttentionShape shape = attention_shape(spec);
  float* const qkv = c_.scratch.qkv.as<float>();
  const bool by_head = norms.q_row.weight == nullptr && norms.k_row.weight == nullptr;
  if (by_head && stackable(w.q, w.k) && stackable(w.k, w.v) &&
      !c_.adapters.change(index, {LoraTarget::q, LoraTarget::k, LoraTarget::v})) {
    const StackedBias bias = {{w.q_bias, w.k_bias, w.v_bias},
                              {w.q.rows, w.q.rows + w.k.rows, shape.row()}};
    const PartialProduct product =
        multiply({{w.q, w.k, w.v}, 3, shape.row(), 0}, shape.row(), rows.rows, stream);
    c_.timer.lap(Operation::qkv, stream);
    launch_rotate_parts(product, bias, shape, c_.rotations.of(spec.rope, w.q_norm, w.k_norm), rows,
                        qkv, c_.cache.layer(index), stream);
    c_.timer.lap(Operation::rope_and_cache, stream);
    return;
  }
  const std::array<Projection, 3> projections = {{{LoraTarget::q, w.q, w.q_bias},
                                                  {LoraTarget::k, w.k, w.k_bias},
                                                  {LoraTarget::v, w.v, w.v_bias}}};
  project(projections, rows.rows, qkv, shape.row(), stream);
  c_.adapt_half_qkv(index, shape, rows.rows, stream);
  c_.timer.lap(Operation::qkv, stream);
  rotate_and_cache(c_, index, rows, stream);
}

void FewRowsPass::attention(std::size_t index, const DeviceBatch& rows, cudaStream_t stream) const {
  const DeviceLayer& w = c_.weights.layers()[index];
  const BlockNorms& norms = c_.weights.norms()[index];
  queries(index, rows, stream);
  attend(c_, index, rows, stream);
  const bool mixed = c_.spec.layers[index].mixture.count > 0;  // whose router is in f32
  const bool experts_first = mixed && c_.weights.mixtures()[index].shared_up.rows == 0;
  add_block(index, {LoraTarget::o, w.o, w.o_bias}, norms.attention_post,
            {&norms.feed_forward, mixed, experts_first ? ColumnOrder::natural : c_.order},
            rows.rows, stream);
  c_.timer.lap(Operation::attention_output, stream);
}

void FewRowsPass::feed_forward(std::size_t index, std::uint32_t rows, cudaStream_t stream) const {
  const DeviceLayer& w = c_.weights.layers()[index];
  const BlockNorms& norms = c_.weights.norms()[index];
  const bool last = index + 1 == c_.spec.layers.size();
  const NextNorm next{last ? nullptr : &c_.weights.norms()[index + 1].attention};
  if (c_.spec.layers[index].mixture.count > 0) {
    mixture(index, rows, stream);
    add_branch(norms.feed_forward_post, next, rows, stream);
  } else {
    hidden(index, {LoraTarget::gate, w.gate, w.gate_bias}, {LoraTarget::up, w.up, w.up_bias}, rows,
           stream);
    c_.timer.lap(Operation::gate_up, stream);
    add_block(index, {LoraTarget::down, w.down, w.down_bias}, norms.feed_forward_post, next, rows,
              stream);
  }
  c_.timer.lap(Operation::down, stream);
}

void FewRowsPass::hidden(std::size_t layer, const Projection& gate, const Projection& up,
                         std::uint32_t rows, cudaStream_t stream) const {
  const std::uint32_t ffn = up.w.rows;
  if (gate.w.rows > 0 && stackable(gate.w, up.w) &&
      !c_.adapters.change(layer, {gate.target, up.target})) {
    const StackedMatrices both = {{gate.w, up.w}, 2, 2 * ffn, 0};
    launch_gated_parts(c_.spec.activation, multiply(both, 2 * ffn, rows, stream), gate.bias,
                       up.bias, rows, ffn, c_.half_rows(), stream);
    return;
  }
  launch_hidden_apart(
      c_, layer, gate, up, rows,
      [&](const Projection& p, float* y) {
        project({&p, 1}, rows, y, ffn, stream);
      },
      stream);
}

void FewRowsPass::mixture(std::size_t index, std::uint32_t rows, cudaStream_t stream) const {
  const DeviceMixture& w = c_.weights.mixtures()[index];
  if (w.shared_up.rows > 0) {
    hidden(index, {LoraTarget::gate, w.shared_gate, nullptr},
           {LoraTarget::up, w.shared_up, nullptr}, rows, stream);
    const Projection down{LoraTarget::down, w.shared_down, nullptr};
    project({&down, 1}, rows, c_.scratch.branch.as<float>(), c_.spec.dim, stream);
    // Experts take columns as they come.
    launch_to_half(c_.scratch.normed.as<float>(), rows, c_.spec.dim, c_.half->rows(), stream);
  }
  mix_half(c_, index, rows, stream);
}

void FewRowsPass::head(std::uint32_t wanted, cudaStream_t stream) const {
  c_.norm(c_.weights.final_norm(), wanted, c_.upload.logit_rows(), stream);
  launch_to_half(c_.scratch.normed.as<float>(), wanted, c_.spec.dim, c_.half_rows(), stream);
  const DeviceMatrix& w = c_.weights.head();
  for (std::uint32_t first = 0; first < w.rows; first += kMostOutputs) {
    const std::uint32_t outputs = std::min(kMostOutputs, w.rows - first);
    launch_collect(multiply({{w}, 1, w.rows, first}, outputs, wanted, stream), {}, wanted, outputs,
                   c_.scratch.logits.as<float>() + first, w.rows, stream);
  }
  c_.finish_logits(wanted, stream);
  c_.timer.lap(Operation::head, stream);
}

}  // namespace edgerunner::cuda
