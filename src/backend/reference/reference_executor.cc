#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "backend/executor.h"
#include "tensor/dequantize.h"

// The plainest possible decoder: straight loops in double, one operation after another, every row
// of a batch for itself. Short enough to be checked by reading; every other backend is tested
// against it. It ignores the options' precision, KV precision and threads.

namespace edgerunner {
namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;  // [rows][columns]

// y = W x + bias for every row.
Rows multiply(const Matrix& w, const Vector& bias, const Rows& x) {
  Rows y(x.size(), Row(w.rows));
  std::vector<float> weights(w.cols);
  const std::size_t stride = row_bytes(w.type, w.cols);
  for (std::uint32_t out = 0; out < w.rows; ++out) {
    dequantize(w.type, w.data.subspan(out * stride, stride), weights);
    for (std::size_t row = 0; row < x.size(); ++row) {
      double sum = bias.empty() ? 0.0 : static_cast<double>(bias[out]);
      for (std::uint32_t i = 0; i < w.cols; ++i) sum += static_cast<double>(weights[i]) * x[row][i];
      y[row][out] = sum;
    }
  }
  return y;
}

// RMSNorm (Zhang and Sennrich 2019): x / sqrt(mean(x^2) + epsilon) * weight.
void rms_norm(std::span<double> x, const Vector& weight, float epsilon) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  const double scale =
      1.0 / std::sqrt(squares / static_cast<double>(x.size()) + static_cast<double>(epsilon));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] *= scale * static_cast<double>(weight[i]);
}

// LayerNorm (Ba et al. 2016): (x - mean(x)) / sqrt(variance(x) + epsilon) * weight + bias.
void layer_norm(std::span<double> x, const Vector& weight, const Vector& bias, float epsilon) {
  double mean = 0;
  for (const double value : x) mean += value / static_cast<double>(x.size());
  for (double& value : x) value -= mean;
  rms_norm(x, weight, epsilon);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += static_cast<double>(bias[i]);
}

void rotate(std::span<double> head, const RopeSpec& rope, std::span<const double> frequencies,
            std::uint32_t position) {
  const std::size_t pairs = frequencies.size();
  for (std::size_t i = 0; i < pairs; ++i) {
    const double angle = position * frequencies[i];
    const double cosine = std::cos(angle) * rope.magnitude;
    const double sine = std::sin(angle) * rope.magnitude;
    const bool neighbours = rope.layout == RopeLayout::interleaved;
    double& a = head[neighbours ? 2 * i : i];
    double& b = head[neighbours ? 2 * i + 1 : i + pairs];
    const double rotated = a * cosine - b * sine;
    b = a * sine + b * cosine;
    a = rotated;
  }
}

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// SiLU, or GELU by its tanh approximation (Hendrycks and Gimpel 2016).
double activate(Activation activation, double x) {
  if (activation == Activation::silu) return x * sigmoid(x);
  const double inner = std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1.0 + std::tanh(inner));
}

// cap * tanh(x / cap), or x where there is no cap.
double capped(double x, float cap) {
  return cap == 0 ? x : static_cast<double>(cap) * std::tanh(x / static_cast<double>(cap));
}

void scale(Row& x, double factor) {
  for (double& value : x) value *= factor;
}

void add(Row& x, const Row& y, double factor = 1.0) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += factor * y[i];
}

void softmax(std::span<double> scores) {
  const double peak = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  for (double& score : scores) total += score = std::exp(score - peak);
  for (double& score : scores) score /= total;
}

// Where a row of the batch stands, and what applies to it.
struct Place {
  std::span<const PageId> pages;
  std::uint32_t position;
  const AdapterSet* adapters;
};

// y += scale * B (A x) for the rows that have adapters.
void adapt(Rows& y, const Rows& x, std::span<const Place> places, std::size_t layer,
           LoraTarget target) {
  for (std::size_t row = 0; row < y.size(); ++row) {
    if (places[row].adapters == nullptr) continue;
    for (const AdapterSet::Use& use : places[row].adapters->uses) {
      const LowRank& update = use.adapter->update(layer, target);
      if (update.empty()) continue;
      const Rows change = multiply(update.b, {}, multiply(update.a, {}, {x[row]}));
      add(y[row], change[0], static_cast<double>(update.scale) * static_cast<double>(use.scale));
    }
  }
}

class ReferenceExecutor final : public Executor {
 public:
  ReferenceExecutor(const Decoder& decoder, const ExecutorOptions& options)
      : spec_(decoder.spec),
        weights_(decoder.weights),
        options_(options),
        info_{"reference", "", {}, 1} {
    info_.kernels.emplace_back("all types: dequantised row by row, double arithmetic");
    for (const LayerSpec& layer : spec_.layers) {
      const std::size_t values =
          std::size_t{options.pages} * kPageTokens * layer.kv_heads * layer.head_dim;
      keys_.emplace_back(values);
      values_.emplace_back(values);
    }
  }

  void forward(const Batch& batch, std::span<float> logits) override {
    check_batch(batch, spec_, options_, logits.size());
    const std::vector<Place> places = places_of(batch);
    const Rows x = run(batch.tokens, places);
    Rows last;
    std::vector<Place> last_places;
    for (const std::uint32_t row : batch.logit_rows) {
      last.push_back(x[row]);
      last_places.push_back(places[row]);
    }
    last = normed(last, weights_.output_norm, weights_.output_norm_bias);
    Rows result = multiply(weights_.head, {}, last);
    adapt(result, last, last_places, 0, LoraTarget::head);
    for (std::size_t row = 0; row < result.size(); ++row) {
      for (std::size_t i = 0; i < spec_.vocab_size; ++i) {
        const double logit = result[row][i] * static_cast<double>(spec_.logit_scale);
        logits[row * spec_.vocab_size + i] = static_cast<float>(capped(logit, spec_.logit_cap));
      }
    }
  }

  void embed(const Batch& batch, std::span<float> hidden) override {
    check_batch(batch, spec_, options_, 0);
    const Rows x = normed(run(batch.tokens, places_of(batch)), weights_.output_norm,
                          weights_.output_norm_bias);
    for (std::size_t row = 0; row < x.size(); ++row) {
      std::copy(x[row].begin(), x[row].end(), hidden.begin() + row * spec_.dim);
    }
  }

  void copy_page(PageId from, PageId to, std::uint32_t tokens) override {
    for (std::size_t i = 0; i < spec_.layers.size(); ++i) {
      const std::size_t width = std::size_t{spec_.layers[i].kv_heads} * spec_.layers[i].head_dim;
      for (std::vector<double>* cache : {&keys_[i], &values_[i]}) {
        const auto source = cache->begin() + from * kPageTokens * width;
        std::copy(source, source + tokens * width, cache->begin() + to * kPageTokens * width);
      }
    }
  }

  const ExecutorInfo& info() const override { return info_; }
  const ExecutorOptions& options() const override { return options_; }

 private:
  static std::vector<Place> places_of(const Batch& batch) {
    std::vector<Place> places;
    for (const SequenceSlice& slice : batch.sequences) {
      for (std::uint32_t i = 0; i < slice.rows; ++i) {
        places.push_back({slice.pages, slice.start + i, slice.adapters});
      }
    }
    return places;
  }

  // The rows after the last layer.
  Rows run(std::span<const TokenId> tokens, std::span<const Place> places) {
    Rows x = embedded(tokens, places);
    for (std::size_t i = 0; i < spec_.layers.size(); ++i) {
      const LayerWeights& w = weights_.layers[i];
      add_block(x, attention(i, normed(x, w.attention.norm, w.attention.norm_bias), places),
                w.attention.post_norm);
      add_block(x,
                feed_forward(i, normed(x, w.feed_forward.norm, w.feed_forward.norm_bias), places),
                w.feed_forward.post_norm);
    }
    return x;
  }

  Rows embedded(std::span<const TokenId> tokens, std::span<const Place> places) const {
    const Matrix& table = weights_.embedding;
    const std::size_t stride = row_bytes(table.type, table.cols);
    std::vector<float> values(table.cols);
    Rows x;
    for (const TokenId token : tokens) {
      dequantize(table.type, table.data.subspan(static_cast<std::size_t>(token) * stride, stride),
                 values);
      x.emplace_back(values.begin(), values.end());
      if (const AdapterSet* adapters = places[x.size() - 1].adapters) {
        add_embedding(*adapters, token, x.back());
      }
      scale(x.back(), static_cast<double>(spec_.embedding_scale));
    }
    return x;
  }

  // What adapters add to a token's row of the embedding: B times the token's row of A.
  static void add_embedding(const AdapterSet& adapters, TokenId token, Row& x) {
    for (const AdapterSet::Use& use : adapters.uses) {
      const LowRank& update = use.adapter->embedding();
      if (update.empty()) continue;
      std::vector<float> values(update.a.cols);
      const std::size_t stride = row_bytes(update.a.type, update.a.cols);
      dequantize(update.a.type,
                 update.a.data.subspan(static_cast<std::size_t>(token) * stride, stride), values);
      const Rows change = multiply(update.b, {}, {Row(values.begin(), values.end())});
      add(x, change[0], static_cast<double>(update.scale) * static_cast<double>(use.scale));
    }
  }

  // Without a weight, x as it is.
  Rows normed(Rows x, const Vector& weight, const Vector& bias) const {
    if (weight.empty()) return x;
    for (Row& row : x) {
      if (spec_.norm == NormKind::rms) {
        rms_norm(row, weight, spec_.norm_epsilon);
      } else {
        layer_norm(row, weight, bias, spec_.norm_epsilon);
      }
    }
    return x;
  }

  // Adds a block's output to the residual stream.
  void add_block(Rows& x, const Rows& output, const Vector& post_norm) const {
    const Rows y = normed(output, post_norm, {});
    for (std::size_t row = 0; row < x.size(); ++row) {
      add(x[row], y[row], static_cast<double>(spec_.residual_scale));
    }
  }

  void rotate_head(std::span<double> head, LayerRope which, std::uint32_t position) const {
    if (which == LayerRope::none) return;
    const RopeSpec& rope = which == LayerRope::local ? spec_.local_rope : spec_.rope;
    rotate(head, rope, rope.frequencies(options_.max_context), position);
  }

  // The slot of a position in a layer's cache, [kv_heads, head_dim].
  static std::size_t slot(const Place& place, std::uint32_t position, std::size_t width) {
    const std::size_t page = place.pages[position / kPageTokens];
    return (page * kPageTokens + position % kPageTokens) * width;
  }

  Rows attention(std::size_t index, const Rows& x, std::span<const Place> places) {
    const LayerSpec& layer = spec_.layers[index];
    const AttentionWeights& w = weights_.layers[index].attention;
    Rows q = multiply(w.q, w.q_bias, x);
    Rows k = multiply(w.k, w.k_bias, x);
    Rows v = multiply(w.v, w.v_bias, x);
    adapt(q, x, places, index, LoraTarget::q);
    adapt(k, x, places, index, LoraTarget::k);
    adapt(v, x, places, index, LoraTarget::v);
    const std::size_t width = std::size_t{layer.kv_heads} * layer.head_dim;

    for (std::size_t row = 0; row < x.size(); ++row) {
      const auto prepare = [&](Row& heads, const Vector& norm) {
        // A norm is as long as the parts that it norms: one head each, or all of them.
        for (std::size_t at = 0; at < heads.size() && !norm.empty(); at += norm.size()) {
          rms_norm(std::span(heads).subspan(at, norm.size()), norm, spec_.norm_epsilon);
        }
        for (std::size_t at = 0; at < heads.size(); at += layer.head_dim) {
          rotate_head(std::span(heads).subspan(at, layer.head_dim), layer.rope,
                      places[row].position);
        }
      };
      prepare(q[row], w.q_norm);
      prepare(k[row], w.k_norm);
      const std::size_t at = slot(places[row], places[row].position, width);
      std::copy(k[row].begin(), k[row].end(), keys_[index].begin() + at);
      std::copy(v[row].begin(), v[row].end(), values_[index].begin() + at);
    }

    Rows attended;
    for (std::size_t row = 0; row < x.size(); ++row) {
      attended.push_back(attend(index, layer, q[row], places[row]));
    }
    Rows out = multiply(w.o, w.o_bias, attended);
    adapt(out, attended, places, index, LoraTarget::o);
    return out;
  }

  // softmax(scale * q.k) v over the positions that the row sees, head by head.
  Row attend(std::size_t index, const LayerSpec& layer, const Row& q, const Place& place) const {
    const std::size_t width = std::size_t{layer.kv_heads} * layer.head_dim;
    const std::uint32_t end = place.position + 1;
    const std::uint32_t begin =
        layer.sliding_window != 0 && end > layer.sliding_window ? end - layer.sliding_window : 0;
    Row out(q.size(), 0.0);
    Row scores(end - begin);
    for (std::uint32_t head = 0; head < layer.heads; ++head) {
      const std::size_t kv_at = std::size_t{head / (layer.heads / layer.kv_heads)} * layer.head_dim;
      const double* query = q.data() + std::size_t{head} * layer.head_dim;
      double* result = out.data() + std::size_t{head} * layer.head_dim;
      for (std::uint32_t p = begin; p < end; ++p) {
        const double* key = keys_[index].data() + slot(place, p, width) + kv_at;
        double score = 0;
        for (std::uint32_t i = 0; i < layer.head_dim; ++i) score += query[i] * key[i];
        scores[p - begin] =
            capped(score * static_cast<double>(layer.attention_scale), layer.attention_cap);
      }
      softmax(scores);
      for (std::uint32_t p = begin; p < end; ++p) {
        const double* value = values_[index].data() + slot(place, p, width) + kv_at;
        const double weight = scores[p - begin];
        for (std::uint32_t i = 0; i < layer.head_dim; ++i) result[i] += weight * value[i];
      }
    }
    return out;
  }

  Rows feed_forward(std::size_t index, const Rows& x, std::span<const Place> places) const {
    const FeedForwardWeights& w = weights_.layers[index].feed_forward;
    const MixtureSpec& mixture = spec_.layers[index].mixture;
    if (mixture.count > 0) return mix(mixture, w.mixture, x);
    Rows up = multiply(w.up, w.up_bias, x);
    adapt(up, x, places, index, LoraTarget::up);
    Rows hidden;
    if (w.gate.empty()) {
      hidden = activated(std::move(up));
    } else {
      Rows gate = multiply(w.gate, w.gate_bias, x);
      adapt(gate, x, places, index, LoraTarget::gate);
      hidden = gated(std::move(gate), up);
    }
    Rows out = multiply(w.down, w.down_bias, hidden);
    adapt(out, hidden, places, index, LoraTarget::down);
    return out;
  }

  Rows activated(Rows x) const {
    for (Row& row : x) {
      for (double& value : row) value = activate(spec_.activation, value);
    }
    return x;
  }

  Rows gated(Rows gate, const Rows& up) const {
    gate = activated(std::move(gate));
    for (std::size_t row = 0; row < gate.size(); ++row) {
      for (std::size_t i = 0; i < gate[row].size(); ++i) gate[row][i] *= up[row][i];
    }
    return gate;
  }

  // Every row through the experts that its router chooses, and through the shared one.
  Rows mix(const MixtureSpec& spec, const MixtureWeights& w, const Rows& x) const {
    Rows out(x.size(), Row(spec_.dim, 0.0));
    Rows routed = multiply(w.router, {}, x);
    for (std::size_t row = 0; row < x.size(); ++row) {
      for (const auto& [expert, weight] : choose_experts(spec, routed[row])) {
        const auto part = [&, e = expert](const Matrix& all, std::uint32_t rows) {
          return all.row_range(e * rows, rows);
        };
        const Rows hidden = gated(multiply(part(w.gate, spec.ffn_dim), {}, {x[row]}),
                                  multiply(part(w.up, spec.ffn_dim), {}, {x[row]}));
        add(out[row], multiply(part(w.down, spec_.dim), {}, hidden)[0], weight);
      }
    }
    if (spec.shared_ffn_dim > 0) {
      const Rows shared = multiply(
          w.shared_down, {}, gated(multiply(w.shared_gate, {}, x), multiply(w.shared_up, {}, x)));
      const Rows share = multiply(w.shared_router, {}, x);
      for (std::size_t row = 0; row < x.size(); ++row) {
        add(out[row], shared[row], sigmoid(share[row][0]));
      }
    }
    return out;
  }

  // The experts of a row with their weights; of equals, the first.
  static std::vector<std::pair<std::uint32_t, double>> choose_experts(const MixtureSpec& spec,
                                                                      Row& scores) {
    softmax(scores);
    std::vector<std::pair<std::uint32_t, double>> chosen;
    double total = 0;
    for (std::uint32_t i = 0; i < spec.used; ++i) {
      const auto best = std::max_element(scores.begin(), scores.end());
      chosen.emplace_back(best - scores.begin(), *best);
      total += *best;
      *best = -1;
    }
    if (spec.normalised) {
      for (auto& choice : chosen) choice.second /= total;
    }
    return chosen;
  }

  const DecoderSpec& spec_;
  const Weights& weights_;
  ExecutorOptions options_;
  ExecutorInfo info_;
  std::vector<std::vector<double>> keys_;    // [layers][pages, kPageTokens, kv_heads, head_dim]
  std::vector<std::vector<double>> values_;  // the same
};

}  // namespace

std::unique_ptr<Executor> make_reference_executor(const Decoder& decoder,
                                                  const ExecutorOptions& options) {
  return std::make_unique<ReferenceExecutor>(decoder, options);
}

MemoryNeed reference_memory_need(const DecoderSpec& spec, const ExecutorOptions& options) {
  MemoryNeed need;
  std::uint64_t widest = spec.dim;
  for (const LayerSpec& layer : spec.layers) {
    need.cache_bytes += std::uint64_t{options.pages} * kPageTokens * layer.kv_heads *
                        layer.head_dim * 2 * sizeof(double);
    widest = std::max<std::uint64_t>({widest, layer.ffn_dim, layer.mixture.count,
                                      layer.mixture.shared_ffn_dim,
                                      std::uint64_t{layer.heads} * layer.head_dim});
  }
  // A handful of row buffers live at once, and the logits.
  need.scratch_bytes = sizeof(double) * (6 * std::uint64_t{options.max_rows} * widest +
                                         std::uint64_t{options.max_logit_rows} * spec.vocab_size);
  return need;
}

}  // namespace edgerunner
