#include <algorithm>
#include <cmath>
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

Rows normed(Rows x, const Vector& weight, float epsilon) {
  for (Row& row : x) rms_norm(row, weight, epsilon);
  return x;
}

void rotate(std::span<double> head, const RopeSpec& rope, std::uint32_t position) {
  const std::size_t pairs = rope.inverse_frequencies.size();
  for (std::size_t i = 0; i < pairs; ++i) {
    const double angle = position * rope.inverse_frequencies[i];
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

double silu(double x) { return x / (1.0 + std::exp(-x)); }

void add(Rows& x, const Rows& y) {
  for (std::size_t row = 0; row < x.size(); ++row) {
    for (std::size_t i = 0; i < x[row].size(); ++i) x[row][i] += y[row][i];
  }
}

// Where a row of the batch stands.
struct Place {
  std::span<const PageId> pages;
  std::uint32_t position;
};

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
    std::vector<Place> places;
    for (const SequenceSlice& slice : batch.sequences) {
      for (std::uint32_t i = 0; i < slice.rows; ++i)
        places.push_back({slice.pages, slice.start + i});
    }

    Rows x = embed(batch.tokens);
    for (std::size_t layer = 0; layer < spec_.layers.size(); ++layer) {
      add(x, attention(layer, normed(x, weights_.layers[layer].attention.norm, spec_.norm_epsilon),
                       places));
      add(x, feed_forward(layer,
                          normed(x, weights_.layers[layer].feed_forward.norm, spec_.norm_epsilon)));
    }

    Rows last;
    for (const std::uint32_t row : batch.logit_rows) last.push_back(x[row]);
    const Rows result =
        multiply(weights_.head, {}, normed(last, weights_.output_norm, spec_.norm_epsilon));
    for (std::size_t row = 0; row < result.size(); ++row) {
      std::copy(result[row].begin(), result[row].end(), logits.begin() + row * spec_.vocab_size);
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
  Rows embed(std::span<const TokenId> tokens) const {
    const Matrix& table = weights_.embedding;
    const std::size_t stride = row_bytes(table.type, table.cols);
    std::vector<float> values(table.cols);
    Rows x;
    for (const TokenId token : tokens) {
      dequantize(table.type, table.data.subspan(static_cast<std::size_t>(token) * stride, stride),
                 values);
      x.emplace_back(values.begin(), values.end());
    }
    return x;
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
    const Rows v = multiply(w.v, w.v_bias, x);
    const std::size_t width = std::size_t{layer.kv_heads} * layer.head_dim;

    for (std::size_t row = 0; row < x.size(); ++row) {
      const auto prepare = [&](Row& heads, const Vector& norm) {
        for (std::size_t at = 0; at < heads.size(); at += layer.head_dim) {
          const std::span<double> head(heads.data() + at, layer.head_dim);
          if (!norm.empty()) rms_norm(head, norm, spec_.norm_epsilon);
          rotate(head, spec_.rope, places[row].position);
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
    return multiply(w.o, w.o_bias, attended);
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
        scores[p - begin] = score * static_cast<double>(layer.attention_scale);
      }
      const double peak = *std::max_element(scores.begin(), scores.end());
      double total = 0;
      for (double& score : scores) total += score = std::exp(score - peak);
      for (std::uint32_t p = begin; p < end; ++p) {
        const double* value = values_[index].data() + slot(place, p, width) + kv_at;
        const double weight = scores[p - begin] / total;
        for (std::uint32_t i = 0; i < layer.head_dim; ++i) result[i] += weight * value[i];
      }
    }
    return out;
  }

  Rows feed_forward(std::size_t index, const Rows& x) const {
    const FeedForwardWeights& w = weights_.layers[index].feed_forward;
    Rows gate = multiply(w.gate, w.gate_bias, x);
    const Rows up = multiply(w.up, w.up_bias, x);
    for (std::size_t row = 0; row < x.size(); ++row) {
      for (std::size_t i = 0; i < gate[row].size(); ++i)
        gate[row][i] = silu(gate[row][i]) * up[row][i];
    }
    return multiply(w.down, w.down_bias, gate);
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
    widest = std::max<std::uint64_t>(
        {widest, layer.ffn_dim, std::uint64_t{layer.heads} * layer.head_dim});
  }
  // A handful of row buffers live at once, and the logits.
  need.scratch_bytes = sizeof(double) * (6 * std::uint64_t{options.max_rows} * widest +
                                         std::uint64_t{options.max_logit_rows} * spec.vocab_size);
  return need;
}

}  // namespace edgerunner
