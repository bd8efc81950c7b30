#include <algorithm>

#include "backend/cpu/forward_pass.h"

// How rows of floats become the operands of products.

namespace edgerunner::cpu {
namespace {

// Rows that are normed and prepared at a time: a few microseconds of work.
constexpr std::uint32_t kPrepareRows = 4;
// Floats that a thread prepares in about the time that sharing them out in a loop would cost.
constexpr std::size_t kShortPreparation = 8192;

}  // namespace

Preparation ForwardPass::preparation(const float* rows, std::uint32_t cols,
                                     std::initializer_list<const Matrix*> readers,
                                     Operation operation) const {
  Preparation result;
  result.rows = rows;
  result.cols = cols;
  result.operation = operation;
  for (const Matrix* matrix : readers) {
    const ActivationFormat format = activation_format(matrix->type, context_.precision);
    result.formats[static_cast<std::size_t>(format)] = true;
  }
  if (readers.size() <= result.readers.weights.size()) {
    std::copy(readers.begin(), readers.end(), result.readers.weights.begin());
  }
  return result;
}

Preparation ForwardPass::layer_operand(std::size_t layer) const {
  Preparation result;
  if (layer < spec_.layers.size()) {
    const AttentionWeights& w = weights_.layers[layer].attention;
    result = preparation(space_.x, spec_.dim, {&w.k, &w.v, &w.q}, Operation::attention_norm);
    result.norm = w.norm;
    result.norm_bias = w.norm_bias;
  } else {
    result = preparation(space_.x, spec_.dim, {&weights_.head}, Operation::head);
    result.norm = weights_.output_norm;
    result.norm_bias = weights_.output_norm_bias;
  }
  result.refinement = Refinement::most;
  return layer < spec_.layers.size()
             ? for_adapters(result, layer, {LoraTarget::q, LoraTarget::k, LoraTarget::v})
             : for_adapters(result, layer, {LoraTarget::head});
}

Preparation ForwardPass::ffn_operand(std::size_t layer) const {
  const FeedForwardWeights& w = weights_.layers[layer].feed_forward;
  const MixtureSpec& mixture = spec_.layers[layer].mixture;
  const MixtureWeights& m = w.mixture;
  Preparation result =
      w.gate.empty() && mixture.count == 0
          ? preparation(space_.x, spec_.dim, {&w.up}, Operation::ffn_norm)
      : mixture.count == 0 ? preparation(space_.x, spec_.dim, {&w.gate, &w.up}, Operation::ffn_norm)
      : mixture.shared_ffn_dim == 0
          ? preparation(space_.x, spec_.dim, {&m.router}, Operation::ffn_norm)
          : preparation(space_.x, spec_.dim,
                        {&m.router, &m.shared_router, &m.shared_gate, &m.shared_up},
                        Operation::ffn_norm);
  result.norm = w.norm;
  result.norm_bias = w.norm_bias;
  result.readers.chained = !w.gate.empty();
  return for_adapters(result, layer, {LoraTarget::gate, LoraTarget::up});
}

bool ForwardPass::is_short(const Preparation& wanted) const {
  if (measured() || context_.observer != nullptr || !wanted.sources.empty()) return false;
  if (std::size_t{rows_->rows} * wanted.cols > kShortPreparation) return false;
  for (std::size_t i = 0; i < kActivationFormats; ++i) {
    const std::size_t bytes = prepared_row_bytes(static_cast<ActivationFormat>(i), wanted.cols);
    if (rows_->rows * bytes > kOwnOperandBytes) return false;
  }
  return true;
}

void ForwardPass::will_read(const Preparation& wanted) {
  if (wanted.rows == nullptr) return;
  if (!is_short(wanted)) return prepare(wanted);
  operand_ = &own_.operand;
  pending_ = wanted;
}

const Operand& ForwardPass::operand() {
  if (pending_.rows != nullptr) {
    for (std::uint32_t row = 0; row < rows_->rows; ++row) prepare_row(pending_, row);
    pending_ = {};
  }
  return *operand_;
}

void ForwardPass::prepare(const Preparation& wanted) {
  const std::uint32_t rows =
      wanted.sources.empty() ? rows_->rows : static_cast<std::uint32_t>(wanted.sources.size());
  operand_ = &space_.operand;
  pending_ = {};
  worker_.for_each((rows + kPrepareRows - 1) / kPrepareRows, [&](std::uint32_t share) {
    const std::uint32_t end = std::min((share + 1) * kPrepareRows, rows);
    for (std::uint32_t row = share * kPrepareRows; row < end; ++row) prepare_row(wanted, row);
  });
  lap(wanted.operation);
}

void ForwardPass::prepare_row(const Preparation& wanted, std::uint32_t row) {
  const std::size_t source = wanted.sources.empty() ? row : wanted.sources[row];
  const float* from = wanted.rows + source * wanted.cols;
  if (!wanted.norm.empty()) {
    norm_row(from, wanted.norm, wanted.norm_bias, own_.row);
    from = own_.row;
  } else if (wanted.gelu) {
    vectors_.gelu(from, wanted.cols, own_.row);
    from = own_.row;
  }
  for (std::size_t i = 0; i < kActivationFormats; ++i) {
    if (!wanted.formats[i]) continue;
    const auto format = static_cast<ActivationFormat>(i);
    context_.kernels.prepare(format, wanted.refinement, from, wanted.cols,
                             operand_->format[i] + row * prepared_row_bytes(format, wanted.cols));
  }
  constexpr auto kFloats = static_cast<std::size_t>(ActivationFormat::f32);
  if (!wanted.for_adapters || wanted.formats[kFloats] || rows_->sets[row] == nullptr) return;
  context_.kernels.prepare(
      ActivationFormat::f32, wanted.refinement, from, wanted.cols,
      operand_->format[kFloats] + row * prepared_row_bytes(ActivationFormat::f32, wanted.cols));
}

void ForwardPass::norm_row(const float* row, std::span<const float> norm,
                           std::span<const float> bias, float* out) const {
  const auto size = static_cast<std::uint32_t>(norm.size());
  if (spec_.norm == NormKind::rms) {
    vectors_.rms_norm(row, norm.data(), size, spec_.norm_epsilon, out);
  } else {
    vectors_.layer_norm(row, norm.data(), bias.data(), size, spec_.norm_epsilon, out);
  }
}

}  // namespace edgerunner::cpu
