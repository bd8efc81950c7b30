#include "backend/cpu/forward_pass.h"

#include <algorithm>
#include <cstring>

#include "tensor/dequantize.h"

namespace edgerunner::cpu {
namespace {

// Shares of a product for each thread: enough to even out threads that run at different speeds.
constexpr std::uint32_t kSharesPerThread = 6;
// Rows that are normed and prepared at a time: a few microseconds of work.
constexpr std::uint32_t kPrepareRows = 4;

constexpr std::uint32_t tiles_of(std::uint32_t rows) { return (rows + kRowTile - 1) / kRowTile; }

constexpr std::uint32_t shares_of(std::uint32_t count, std::uint32_t size) {
  return (count + size - 1) / size;
}

}  // namespace

ForwardPass::ForwardPass(const PassContext& context, ThreadPool::Worker& worker)
    : context_(context),
      worker_(worker),
      spec_(context.decoder.spec),
      weights_(context.decoder.weights),
      vectors_(context.vectors),
      space_(context.workspace),
      own_(context.workspace.workers[static_cast<std::size_t>(worker.index())]),
      rows_(&context.plan.all()) {}

void ForwardPass::run() {
  embed();
  for (std::size_t layer = 0; layer < spec_.layers.size(); ++layer) block(layer);
  head();
}

void ForwardPass::block(std::size_t layer) {
  attention(layer);
  if (rows_->rows > 0) feed_forward(layer);
}

void ForwardPass::embed() {
  const Matrix& table = weights_.embedding;
  const std::size_t stride = row_bytes(table.type, table.cols);
  const std::uint32_t ready = context_.ropes.ready();
  const std::uint32_t end = context_.plan.end_position();
  const std::uint32_t missing = end > ready ? end - ready : 0;
  worker_.for_each(rows_->rows + missing, [&](std::uint32_t i) {
    if (i >= rows_->rows) {
      context_.ropes.fill(ready + (i - rows_->rows));
      return;
    }
    const auto token = static_cast<std::size_t>(context_.batch.tokens[i]);
    const std::span<float> row(space_.x + std::size_t{i} * spec_.dim, spec_.dim);
    dequantize(table.type, table.data.subspan(token * stride, stride), row);
    if (spec_.embedding_scale == 1) return;
    for (float& value : row) value *= spec_.embedding_scale;
  });
  lap(Operation::embedding);
}

void ForwardPass::attention(std::size_t layer) {
  const LayerSpec& shape = spec_.layers[layer];
  const AttentionWeights& w = weights_.layers[layer].attention;
  const bool last = layer + 1 == spec_.layers.size();
  const bool narrows = last && context_.plan.wanted().rows < rows_->rows;

  const Matrix* readers[] = {&w.k, &w.v, &w.q};
  prepare(space_.x, spec_.dim, {readers, narrows ? 2U : 3U}, w.norm, Refinement::most);
  lap(Operation::attention_norm);
  const Product kv_and_q[] = {product(w.k, w.k_bias, space_.k, Epilogue::store),
                              product(w.v, w.v_bias, space_.v, Epilogue::store),
                              product(w.q, w.q_bias, space_.q, Epilogue::store)};
  multiply({kv_and_q, narrows ? 2U : 3U}, false);
  lap(Operation::qkv);
  norm_whole_rows(w.k_norm, shape, shape.kv_heads, space_.k);
  store(layer);
  lap(Operation::rope_and_cache);
  if (narrows) {
    narrow();
    if (rows_->rows == 0) return;
    prepare(space_.x, spec_.dim, {readers + 2, 1}, w.norm, Refinement::most);
    const Product q[] = {product(w.q, w.q_bias, space_.q, Epilogue::store)};
    multiply(q, false);
    lap(Operation::qkv);
  }
  norm_whole_rows(w.q_norm, shape, shape.heads, space_.q);
  attend(layer);
  lap(Operation::attention);
  add_output(space_.q, w.o, w.o_bias, w.post_norm);
  lap(Operation::attention_output);
}

void ForwardPass::feed_forward(std::size_t layer) {
  const FeedForwardWeights& w = weights_.layers[layer].feed_forward;
  if (spec_.layers[layer].mixture.count > 0) {
    mixture(layer);
    return;
  }
  const Matrix* readers[] = {&w.gate, &w.up};
  prepare(space_.x, spec_.dim, readers, w.norm);
  lap(Operation::ffn_norm);
  const Product gate_and_up[] = {product(w.gate, w.gate_bias, space_.hidden, Epilogue::store),
                                 product(w.up, w.up_bias, space_.hidden, gated())};
  multiply(gate_and_up, true);
  lap(Operation::gate_up);
  add_output(space_.hidden, w.down, w.down_bias, w.post_norm);
  lap(Operation::down);
}

void ForwardPass::add_output(const float* rows, const Matrix& weights, const Vector& bias,
                             const Vector& post_norm) {
  const Matrix* readers[] = {&weights};
  prepare(rows, weights.cols, readers, {});
  const bool plain = post_norm.empty() && spec_.residual_scale == 1;
  const Product output[] = {product(weights, bias, plain ? space_.x : space_.branch,
                                    plain ? Epilogue::add : Epilogue::store)};
  multiply(output, false);
  if (!plain) add_branch(post_norm);
}

void ForwardPass::add_branch(const Vector& post_norm) {
  worker_.for_each(rows_->rows, [&](std::uint32_t row) {
    const float* from = space_.branch + std::size_t{row} * spec_.dim;
    float* x = space_.x + std::size_t{row} * spec_.dim;
    if (!post_norm.empty()) {
      vectors_.rms_norm(from, post_norm.data(), spec_.dim, spec_.norm_epsilon, own_.row);
      from = own_.row;
    }
    for (std::uint32_t i = 0; i < spec_.dim; ++i) x[i] += spec_.residual_scale * from[i];
  });
}

// RMSNorm over all heads of a row together; norms of single heads are applied with the rotation.
void ForwardPass::norm_whole_rows(const Vector& norm, const LayerSpec& shape, std::uint32_t heads,
                                  float* rows) {
  if (norm.size() <= shape.head_dim) return;
  const std::uint32_t width = heads * shape.head_dim;
  worker_.for_each(rows_->rows, [&](std::uint32_t row) {
    float* values = rows + std::size_t{row} * width;
    vectors_.rms_norm(values, norm.data(), width, spec_.norm_epsilon, values);
  });
}

Epilogue ForwardPass::gated() const {
  return spec_.activation == Activation::silu ? Epilogue::silu_multiply : Epilogue::gelu_multiply;
}

void ForwardPass::head() {
  if (rows_ != &context_.plan.wanted() && context_.plan.wanted().rows < rows_->rows) narrow();
  if (rows_->rows == 0) return;
  const Matrix* readers[] = {&weights_.head};
  prepare(space_.x, spec_.dim, readers, weights_.output_norm, Refinement::most);
  const Product logits[] = {product(weights_.head, {}, context_.logits.data(), Epilogue::store)};
  multiply(logits, false);
  if (spec_.logit_scale != 1 || spec_.logit_cap != 0) {
    constexpr std::uint32_t kPart = 4096;
    const auto size = static_cast<std::uint32_t>(context_.logits.size());
    worker_.for_each(shares_of(size, kPart), [&](std::uint32_t part) {
      vectors_.soft_cap(context_.logits.data() + std::size_t{part} * kPart,
                        std::min(kPart, size - part * kPart), spec_.logit_scale, spec_.logit_cap);
    });
  }
  lap(Operation::head);
}

void ForwardPass::narrow() {
  rows_ = &context_.plan.wanted();
  worker_.for_each(1, [&](std::uint32_t) {
    // Ascending, so that no row is overwritten before it has moved.
    for (std::uint32_t i = 0; i < rows_->rows; ++i) {
      const std::size_t from = context_.batch.logit_rows[i];
      std::memmove(space_.x + std::size_t{i} * spec_.dim, space_.x + from * spec_.dim,
                   spec_.dim * sizeof(float));
    }
  });
}

void ForwardPass::prepare(const float* rows, std::uint32_t cols,
                          std::span<const Matrix* const> weights, std::span<const float> norm,
                          Refinement refinement, std::span<const std::uint32_t> sources) {
  bool wanted[kActivationFormats] = {};
  for (const Matrix* matrix : weights) {
    wanted[static_cast<std::size_t>(activation_format(matrix->type, context_.precision))] = true;
  }
  const auto prepare_row = [&](std::uint32_t row) {
    const float* from = rows + std::size_t{sources.empty() ? row : sources[row]} * cols;
    if (!norm.empty()) {
      vectors_.rms_norm(from, norm.data(), cols, spec_.norm_epsilon, own_.row);
      from = own_.row;
    }
    for (std::size_t i = 0; i < kActivationFormats; ++i) {
      if (!wanted[i]) continue;
      const auto format = static_cast<ActivationFormat>(i);
      context_.kernels.prepare(format, refinement, from, cols,
                               space_.operand.format[i] + row * prepared_row_bytes(format, cols));
    }
  };
  const std::uint32_t count =
      sources.empty() ? rows_->rows : static_cast<std::uint32_t>(sources.size());
  worker_.for_each(shares_of(count, kPrepareRows), [&](std::uint32_t share) {
    const std::uint32_t end = std::min((share + 1) * kPrepareRows, count);
    for (std::uint32_t row = share * kPrepareRows; row < end; ++row) {
      prepare_row(row);
    }
  });
}

Activations ForwardPass::activations(const Matrix& weights) const {
  const ActivationFormat format = activation_format(weights.type, context_.precision);
  return {format, rows_->rows, weights.cols,
          space_.operand.format[static_cast<std::size_t>(format)],
          prepared_row_bytes(format, weights.cols)};
}

Product ForwardPass::product(const Matrix& weights, const Vector& bias, float* out,
                             Epilogue epilogue) const {
  return {&weights, bias.empty() ? nullptr : bias.data(), activations(weights), out, weights.rows,
          epilogue};
}

std::uint32_t ForwardPass::product_share(std::uint32_t rows, std::uint32_t count) const {
  const auto threads = static_cast<std::uint32_t>(worker_.count());
  return std::max(1U, tiles_of(rows) * count / (threads * kSharesPerThread)) * kRowTile;
}

void ForwardPass::multiply(std::span<const Product> products, bool chained) {
  std::uint32_t tiles = 0;
  for (const Product& p : products) tiles += tiles_of(p.weights->rows);
  if (chained) tiles = tiles_of(products[0].weights->rows);
  const std::uint32_t threads = static_cast<std::uint32_t>(worker_.count());
  // Pairs of tiles: two share what a kernel loads of the activations.
  const std::uint32_t share_tiles = std::max(2U, tiles / (threads * kSharesPerThread) / 2 * 2);
  const auto run = [&](const Product& p, std::uint32_t share) {
    const std::uint32_t begin = share * share_tiles * kRowTile;
    context_.kernels.multiply(p, begin, std::min(begin + share_tiles * kRowTile, p.weights->rows),
                              own_.multiply);
  };
  if (chained) {
    worker_.for_each(shares_of(tiles, share_tiles), [&](std::uint32_t share) {
      for (const Product& p : products) run(p, share);
    });
    return;
  }
  std::uint32_t shares = 0;
  for (const Product& p : products) shares += shares_of(tiles_of(p.weights->rows), share_tiles);
  worker_.for_each(shares, [&](std::uint32_t share) {
    for (const Product& p : products) {
      const std::uint32_t count = shares_of(tiles_of(p.weights->rows), share_tiles);
      if (share < count) {
        run(p, share);
        return;
      }
      share -= count;
    }
  });
}

}  // namespace edgerunner::cpu
