#include "backend/cpu/forward_pass.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/kernels/scratch.h"
#include "tensor/dequantize.h"

namespace edgerunner::cpu {
namespace {

// Shares of a product for each thread: enough to even out threads that run at different speeds.
constexpr std::uint32_t kSharesPerThread = 6;
// With so many rows the smallest share takes long enough, and leaves the threads least to wait.
constexpr std::uint32_t kManyRows = 64;
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
      rows_(&context.plan.all()),
      operand_(&space_.operand) {}

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
  const auto fill = [&](std::uint32_t i) {
    if (i >= rows_->rows) {
      context_.ropes.fill(ready + (i - rows_->rows));
      return;
    }
    const auto token = static_cast<std::size_t>(context_.batch.tokens[i]);
    const std::span<float> row(space_.x + std::size_t{i} * spec_.dim, spec_.dim);
    dequantize(table.type, table.data.subspan(token * stride, stride), row);
    if (!rows_->sets.empty() && rows_->sets[i] != nullptr) {
      adapt_embedding(*rows_->sets[i], context_.batch.tokens[i], i);
    }
    if (spec_.embedding_scale == 1) return;
    for (float& value : row) value *= spec_.embedding_scale;
  };
  loop_then_read(rows_->rows + missing, Operation::embedding, layer_operand(0), fill);
}

// Reads the operand of q, k and v that is announced, and announces that of the feed-forward part.
void ForwardPass::attention(std::size_t layer) {
  const LayerSpec& shape = spec_.layers[layer];
  const AttentionWeights& w = weights_.layers[layer].attention;
  const bool last = layer + 1 == spec_.layers.size();
  const bool narrows = last && context_.hidden.empty() && context_.plan.wanted().rows < rows_->rows;

  const Product kv_and_q[] = {product(w.k, w.k_bias, space_.k, Epilogue::store),
                              product(w.v, w.v_bias, space_.v, Epilogue::store),
                              product(w.q, w.q_bias, space_.q, Epilogue::store)};
  Preparation output;  // not prepared yet: the operand is what attention will write
  output.readers.weights = {&w.o};
  multiply({kv_and_q, narrows ? 2U : 3U}, Operation::qkv, output);
  const Update updates[] = {{LoraTarget::k, space_.k, w.k.rows},
                            {LoraTarget::v, space_.v, w.v.rows},
                            {LoraTarget::q, space_.q, w.q.rows}};
  adapt(layer, {updates, narrows ? 2U : 3U}, Operation::qkv);
  norm_whole_rows(w.k_norm, shape, shape.kv_heads, space_.k);
  if (narrows || !stores_as_it_attends()) store(layer);
  if (narrows) {
    narrow();
    if (rows_->rows == 0) return;
    prepare(layer_operand(layer));
    const Product q[] = {product(w.q, w.q_bias, space_.q, Epilogue::store)};
    multiply(q, Operation::qkv, {});
    adapt(layer, {&updates[2], 1}, Operation::qkv);
  }
  norm_whole_rows(w.q_norm, shape, shape.heads, space_.q);
  attend(layer, for_adapters(preparation(space_.q, w.o.cols, {&w.o}, Operation::attention_output),
                             layer, {LoraTarget::o}));
  add_output(layer, LoraTarget::o, w.o, w.o_bias, w.post_norm, Operation::attention_output,
             ffn_operand(layer));
}

void ForwardPass::feed_forward(std::size_t layer) {
  const FeedForwardWeights& w = weights_.layers[layer].feed_forward;
  if (spec_.layers[layer].mixture.count > 0) {
    mixture(layer);
    return;
  }
  Preparation hidden =
      for_adapters(preparation(space_.hidden, w.down.cols, {&w.down}, Operation::down), layer,
                   {LoraTarget::down});
  if (!w.gate.empty()) {
    multiply_gated(layer, hidden);
  } else {
    hidden.gelu = true;
    const bool adapted = adapts(layer, {LoraTarget::up});
    const Product up[] = {product(w.up, w.up_bias, space_.hidden, Epilogue::store)};
    multiply(up, Operation::gate_up, adapted ? Preparation{} : hidden);
    if (adapted) {
      const Update updates[] = {{LoraTarget::up, space_.hidden, w.up.rows}};
      adapt(layer, updates, Operation::gate_up);
      prepare(hidden);
    }
  }
  add_output(layer, LoraTarget::down, w.down, w.down_bias, w.post_norm, Operation::down,
             layer_operand(layer + 1));
}

// Gate and up into `hidden`. Where adapters change them they pass through memory; what becomes of
// them is the same, to the bit.
void ForwardPass::multiply_gated(std::size_t layer, const Preparation& hidden) {
  const FeedForwardWeights& w = weights_.layers[layer].feed_forward;
  const Product gate = product(w.gate, w.gate_bias, space_.hidden, Epilogue::store);
  if (!adapts(layer, {LoraTarget::gate, LoraTarget::up})) {
    const Product gated[] = {gated_product(gate, w.up, w.up_bias)};
    multiply(gated, Operation::gate_up, hidden);
    return;
  }
  const Product both[] = {gate, product(w.up, w.up_bias, space_.up, Epilogue::store)};
  multiply(both, Operation::gate_up, {});
  const Update updates[] = {{LoraTarget::gate, space_.hidden, w.gate.rows},
                            {LoraTarget::up, space_.up, w.up.rows}};
  adapt(layer, updates, Operation::gate_up);
  loop_then_read(rows_->rows, Operation::gate_up, hidden, [&](std::uint32_t row) {
    const std::size_t at = std::size_t{row} * w.up.rows;
    context_.kernels.apply_gate(gated(), space_.up + at, w.up.rows, space_.hidden + at);
  });
}

void ForwardPass::add_output(std::size_t layer, LoraTarget target, const Matrix& weights,
                             const Vector& bias, const Vector& post_norm, Operation operation,
                             const Preparation& next) {
  if (post_norm.empty() && spec_.residual_scale == 1) {
    const bool adapted = adapts(layer, {target});
    const Product output[] = {product(weights, bias, space_.x, Epilogue::add)};
    multiply(output, operation, adapted ? Preparation{} : next);
    if (!adapted) return;
    const Update updates[] = {{target, space_.x, weights.rows}};
    adapt(layer, updates, operation);
    prepare(next);
    return;
  }
  const Product output[] = {product(weights, bias, space_.branch, Epilogue::store)};
  multiply(output, operation, {});
  const Update updates[] = {{target, space_.branch, weights.rows}};
  adapt(layer, updates, operation);
  add_branch(post_norm, operation, next);
}

void ForwardPass::add_branch(const Vector& post_norm, Operation operation,
                             const Preparation& next) {
  loop_then_read(rows_->rows, operation, next, [&](std::uint32_t row) {
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
  if (!context_.hidden.empty()) return hidden();
  if (context_.plan.wanted().rows < rows_->rows) {
    narrow();
    prepare(layer_operand(spec_.layers.size()));
  }
  if (rows_->rows == 0) return;
  const Product logits[] = {product(weights_.head, {}, context_.logits.data(), Epilogue::store)};
  multiply(logits, Operation::head, {});
  const Update updates[] = {{LoraTarget::head, context_.logits.data(), weights_.head.rows}};
  adapt(spec_.layers.size(), updates, Operation::head);
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

void ForwardPass::hidden() {
  worker_.for_each(rows_->rows, [&](std::uint32_t row) {
    const std::size_t at = std::size_t{row} * spec_.dim;
    norm_row(space_.x + at, weights_.output_norm, weights_.output_norm_bias,
             context_.hidden.data() + at);
  });
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

Activations ForwardPass::activations(const Matrix& weights) const {
  const ActivationFormat format = activation_format(weights.type, context_.precision);
  return {format, rows_->rows, weights.cols, operand_->format[static_cast<std::size_t>(format)],
          prepared_row_bytes(format, weights.cols)};
}

Product ForwardPass::product(const Matrix& weights, const Vector& bias, float* out,
                             Epilogue epilogue) const {
  return {&weights, bias.empty() ? nullptr : bias.data(), activations(weights), out, weights.rows,
          epilogue};
}

Product ForwardPass::gated_product(const Product& gate, const Matrix& up,
                                   const Vector& bias) const {
  Product result = product(up, bias, gate.out, gated());
  result.gate = &gate;
  return result;
}

std::uint32_t ForwardPass::product_share(std::uint32_t rows, std::uint32_t count) const {
  const auto threads = static_cast<std::uint32_t>(worker_.count());
  return std::max(1U, tiles_of(rows) * count / (threads * kSharesPerThread)) * kRowTile;
}

std::uint32_t ForwardPass::unit_tiles() const {
  // Pairs, where two share what a kernel loads of the activations.
  return rows_->rows <= kRowTokens ? 1 : 2;
}

void ForwardPass::multiply(std::span<const Product> products, Operation operation,
                           const Preparation& next) {
  if (context_.observer != nullptr) show(products);
  std::uint32_t tiles = 0;
  for (const Product& p : products) tiles += tiles_of(p.weights->rows);
  const std::uint32_t threads = static_cast<std::uint32_t>(worker_.count());
  const bool few = rows_->rows <= kFewTokens;
  const std::uint32_t share_tiles =
      few                        ? unit_tiles()
      : rows_->rows >= kManyRows ? 2U
                                 : std::max(2U, tiles / (threads * kSharesPerThread) / 2 * 2);
  const auto shares_in = [&](const Product& p) {
    return shares_of(tiles_of(p.weights->rows), share_tiles);
  };
  std::uint32_t shares = 0;
  for (const Product& p : products) shares += shares_in(p);
  const std::uint64_t name = ++own_.operands;
  const std::uint32_t own_begin = worker_.first_of(shares);
  const std::uint32_t own_end = worker_.end_of(shares);
  const std::byte* const next_begin = begins(next.readers)[0].data();
  const auto run = [&](std::uint32_t begin, std::uint32_t end) {
    constexpr auto kRows = kRowTile;
    operand();
    // Of the own part the last, or another's: after it come the next products.
    const bool is_last = begin < own_begin || end >= own_end;
    for (std::size_t i = 0; i < products.size(); ++i) {
      Product p = products[i];
      p.operand = name;
      const std::uint32_t count = shares_in(p);
      if (begin < count) {
        const bool goes_on = end > count && i + 1 < products.size();
        p.then = goes_on ? products[i + 1].weights->data.data() : is_last ? next_begin : nullptr;
        context_.kernels.multiply(
            p, begin * share_tiles * kRows,
            std::min(std::min(end, count) * share_tiles * kRows, p.weights->rows), own_.multiply);
      }
      if (end <= count) return;
      begin = begin > count ? begin - count : 0;
      end -= count;
    }
  };
  if (few) {
    ranges_then_read(shares, operation, next, run);
  } else {
    loop_then_read(shares, operation, next, [&](std::uint32_t share) { run(share, share + 1); });
  }
}

void ForwardPass::fetch(const Upcoming& next) const {
  for (const std::span<const std::byte> weights : begins(next)) {
    const std::size_t end = std::min(kFetchedWaiting, weights.size());
    for (std::size_t i = 0; i < end; i += 64) __builtin_prefetch(&weights[i], 0, 2);
  }
}

std::array<std::span<const std::byte>, 2> ForwardPass::begins(const Upcoming& next) const {
  std::array<std::span<const std::byte>, 2> result;
  if (rows_->rows > kFewTokens) return result;
  const std::uint32_t unit = unit_tiles();
  std::uint32_t units = 0;
  for (const Matrix* weights : next.weights) {
    if (weights == nullptr) break;
    units += shares_of(tiles_of(weights->rows), unit);
    if (next.chained) break;
  }
  std::uint32_t first = worker_.first_of(units);
  std::size_t found = 0;
  for (const Matrix* weights : next.weights) {
    if (weights == nullptr || found == result.size()) break;
    const std::uint32_t count = shares_of(tiles_of(weights->rows), unit);
    if (first < count) {
      const std::size_t at =
          std::size_t{first} * unit * kRowTile * row_bytes(weights->type, weights->cols);
      result[found++] = weights->data.subspan(std::min(at, weights->data.size()));
      if (!next.chained) break;
    } else {
      first -= count;
    }
  }
  return result;
}

void ForwardPass::show(std::span<const Product> products) {
  worker_.for_each(static_cast<std::uint32_t>(products.size()), [&](std::uint32_t i) {
    const Activations& x = products[i].x;
    const InputRows rows{x.data, x.rows, x.cols, x.row_stride};
    context_.observer->see(*products[i].weights, 0, rows);
    if (products[i].gate != nullptr) context_.observer->see(*products[i].gate->weights, 0, rows);
  });
}

}  // namespace edgerunner::cpu
