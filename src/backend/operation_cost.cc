#include "backend/operation_cost.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace edgerunner {
namespace {

// Operations on a number: square, sum, scale and weight of a norm; a rotation's share in two
// products and a sum.
constexpr double kNormOperations = 4;
constexpr double kRopeOperations = 3;

OperationCost& at(OperationCosts& costs, Operation operation) {
  return costs[static_cast<std::size_t>(operation)];
}

double& f32(OperationCost& cost) {
  return cost.operations[static_cast<std::size_t>(Arithmetic::f32)];
}

// What rows see of their sequences: the sum over rows, and the positions that any of them sees.
struct Sight {
  double pairs = 0;
  double positions = 0;
};

// Of rows [first, end) of a slice.
Sight sight(const SequenceSlice& slice, std::uint32_t first, std::uint32_t end,
            std::uint32_t window) {
  Sight result;
  const auto seen = [&](std::uint32_t row) {
    const std::uint32_t all = slice.start + row + 1;
    return window == 0 ? all : std::min(all, window);
  };
  for (std::uint32_t row = first; row < end; ++row) result.pairs += seen(row);
  result.positions = seen(first) + (end - 1 - first);
  return result;
}

}  // namespace

double OperationCost::all_operations() const {
  return std::accumulate(operations.begin(), operations.end(), 0.0);
}

OperationCost& OperationCost::operator+=(const OperationCost& other) {
  weight_bytes += other.weight_bytes;
  cache_bytes += other.cache_bytes;
  for (std::size_t i = 0; i < kArithmetics; ++i) operations[i] += other.operations[i];
  return *this;
}

// A batch, and the part of it that wants logits.
struct CostModel::Work {
  const Batch* batch;
  std::uint32_t rows;
  std::uint32_t wanted;

  // What the rows see with a window; of each sequence those from its first to its last row that
  // wants logits where `narrowed`.
  Sight visible(std::uint32_t window, bool narrowed) const {
    Sight total;
    std::uint32_t begin = 0;
    for (const SequenceSlice& slice : batch->sequences) {
      const auto wants = batch->logit_rows;
      const auto first = std::lower_bound(wants.begin(), wants.end(), begin);
      const auto end = std::lower_bound(first, wants.end(), begin + slice.rows);
      const bool some = !narrowed || first != end;
      if (slice.rows > 0 && some) {
        const Sight part = sight(slice, narrowed ? *first - begin : 0,
                                 narrowed ? end[-1] - begin + 1 : slice.rows, window);
        total.pairs += part.pairs;
        total.positions += part.positions;
      }
      begin += slice.rows;
    }
    return total;
  }
};

// The rows of a batch that an adapter applies to, and those of them that want logits.
struct CostModel::AdapterRows {
  const LoraAdapter* adapter;
  std::uint32_t rows = 0;
  std::uint32_t wanted = 0;

  // Of each adapter that any sequence has.
  static std::vector<AdapterRows> of(const Batch& batch) {
    std::vector<AdapterRows> all;
    std::uint32_t begin = 0;
    for (const SequenceSlice& slice : batch.sequences) {
      const auto wants = batch.logit_rows;
      const auto first = std::lower_bound(wants.begin(), wants.end(), begin);
      begin += slice.rows;
      const auto end = std::lower_bound(first, wants.end(), begin);
      if (slice.adapters == nullptr) continue;
      for (const AdapterSet::Use& use : slice.adapters->uses) {
        auto entry = std::find_if(all.begin(), all.end(), [&](const AdapterRows& known) {
          return known.adapter == use.adapter;
        });
        if (entry == all.end()) entry = all.insert(entry, {use.adapter});
        entry->rows += slice.rows;
        entry->wanted += static_cast<std::uint32_t>(end - first);
      }
    }
    return all;
  }
};

CostModel::CostModel(const Decoder& decoder, const Profilable& backend, double cache_token_bytes)
    : decoder_(&decoder), backend_(&backend) {
  double values = 0;
  for (const LayerSpec& layer : decoder.spec.layers)
    values += 2.0 * layer.kv_heads * layer.head_dim;
  cache_value_bytes_ = cache_token_bytes / values;
}

OperationCost CostModel::product(const Matrix& weights, const Vector& bias,
                                 std::uint32_t rows) const {
  OperationCost cost;
  if (weights.empty() || rows == 0) return cost;
  cost.weight_bytes = static_cast<double>(weights.rows) *
                          static_cast<double>(row_bytes(weights.type, weights.cols)) +
                      static_cast<double>(bias.size() * sizeof(float));
  cost.operations[static_cast<std::size_t>(backend_->arithmetic(weights.type, rows))] =
      2.0 * weights.rows * weights.cols * rows;
  return cost;
}

OperationCost CostModel::norm(const Vector& weights, std::uint32_t dims, std::uint32_t rows) {
  OperationCost cost;
  if (weights.empty() || rows == 0) return cost;
  cost.weight_bytes = static_cast<double>(weights.size() * sizeof(float));
  f32(cost) = kNormOperations * dims * rows;
  return cost;
}

void CostModel::add(const Batch& batch, OperationCosts& costs) const {
  const Work work{&batch, static_cast<std::uint32_t>(batch.tokens.size()),
                  static_cast<std::uint32_t>(batch.logit_rows.size())};
  const DecoderSpec& spec = decoder_->spec;
  const Weights& weights = decoder_->weights;
  at(costs, Operation::embedding).weight_bytes +=
      static_cast<double>(row_bytes(weights.embedding.type, weights.embedding.cols)) * work.rows;
  for (std::size_t layer = 0; layer < spec.layers.size(); ++layer) add_layer(work, layer, costs);
  at(costs, Operation::head) += norm(weights.output_norm, spec.dim, work.wanted);
  at(costs, Operation::head) += product(weights.head, {}, work.wanted);
  for (const AdapterRows& rows : AdapterRows::of(batch)) add_adapter(rows, costs);
}

// A and B are multiplied with f32 activations. Parts of a fused tensor share their A.
void CostModel::add_adapter(const AdapterRows& rows, OperationCosts& costs) const {
  const auto matrix = [](const Matrix& m, std::uint32_t count) {
    OperationCost cost;
    cost.weight_bytes =
        static_cast<double>(m.rows) * static_cast<double>(row_bytes(m.type, m.cols));
    f32(cost) = 2.0 * m.rows * m.cols * count;
    return cost;
  };
  const std::size_t layers = decoder_->spec.layers.size();
  const std::byte* last_a = nullptr;
  const auto add = [&](Operation operation, std::size_t layer, LoraTarget target,
                       std::uint32_t count) {
    const LowRank& update = rows.adapter->update(layer, target);
    if (update.empty() || count == 0) return;
    if (update.a.data.data() != last_a) at(costs, operation) += matrix(update.a, count);
    last_a = update.a.data.data();
    at(costs, operation) += matrix(update.b, count);
  };
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const std::uint32_t seen = layer + 1 == layers ? rows.wanted : rows.rows;
    add(Operation::qkv, layer, LoraTarget::k, rows.rows);
    add(Operation::qkv, layer, LoraTarget::v, rows.rows);
    add(Operation::qkv, layer, LoraTarget::q, seen);
    add(Operation::attention_output, layer, LoraTarget::o, seen);
    add(Operation::gate_up, layer, LoraTarget::gate, seen);
    add(Operation::gate_up, layer, LoraTarget::up, seen);
    add(Operation::down, layer, LoraTarget::down, seen);
  }
  add(Operation::head, 0, LoraTarget::head, rows.wanted);

  const LowRank& embedding = rows.adapter->embedding();
  if (embedding.empty()) return;
  OperationCost& cost = at(costs, Operation::embedding);
  cost.weight_bytes +=
      static_cast<double>(row_bytes(embedding.a.type, embedding.a.cols)) * rows.rows;
  cost += matrix(embedding.b, rows.rows);
}

void CostModel::add_layer(const Work& work, std::size_t layer, OperationCosts& costs) const {
  const DecoderSpec& spec = decoder_->spec;
  const LayerSpec& shape = spec.layers[layer];
  const AttentionWeights& a = decoder_->weights.layers[layer].attention;
  const FeedForwardWeights& f = decoder_->weights.layers[layer].feed_forward;
  const bool narrowed = layer + 1 == spec.layers.size();
  const std::uint32_t rows = narrowed ? work.wanted : work.rows;
  const std::uint32_t kv_values = shape.kv_heads * shape.head_dim;
  const std::uint32_t q_values = shape.heads * shape.head_dim;

  at(costs, Operation::attention_norm) += norm(a.norm, spec.dim, work.rows);
  OperationCost& qkv = at(costs, Operation::qkv);
  qkv += product(a.q, a.q_bias, rows);
  qkv += product(a.k, a.k_bias, work.rows);
  qkv += product(a.v, a.v_bias, work.rows);

  OperationCost& rope = at(costs, Operation::rope_and_cache);
  rope += norm(a.q_norm, q_values, rows);
  rope += norm(a.k_norm, kv_values, work.rows);
  f32(rope) += kRopeOperations *
               (static_cast<double>(kv_values) * work.rows + static_cast<double>(q_values) * rows);
  rope.cache_bytes += 2.0 * kv_values * work.rows * cache_value_bytes_;

  const Sight seen = work.visible(shape.sliding_window, narrowed);
  OperationCost& attention = at(costs, Operation::attention);
  attention.cache_bytes += 2.0 * kv_values * seen.positions * cache_value_bytes_;
  // Scores and weighted values.
  attention.operations[static_cast<std::size_t>(backend_->attention_arithmetic())] +=
      4.0 * q_values * seen.pairs;

  at(costs, Operation::attention_output) += product(a.o, a.o_bias, rows);
  at(costs, Operation::ffn_norm) += norm(f.norm, spec.dim, rows);
  at(costs, Operation::gate_up) += product(f.gate, f.gate_bias, rows);
  at(costs, Operation::gate_up) += product(f.up, f.up_bias, rows);
  at(costs, Operation::down) += product(f.down, f.down_bias, rows);
  if (shape.mixture.count > 0) add_mixture(shape.mixture, f.mixture, rows, costs);
}

// Which experts are read depends on the rows: what counts is how many of them rows that choose at
// random would touch.
void CostModel::add_mixture(const MixtureSpec& spec, const MixtureWeights& w, std::uint32_t rows,
                            OperationCosts& costs) const {
  const double chosen = static_cast<double>(spec.used) / spec.count;
  const double touched = 1 - std::pow(1 - chosen, rows);
  const auto experts = [&](const Matrix& all) {
    OperationCost cost = product(all, {}, rows);
    cost.weight_bytes *= touched;
    for (double& operations : cost.operations) operations *= chosen;
    return cost;
  };
  for (const Matrix* matrix : {&w.router, &w.shared_router, &w.shared_gate, &w.shared_up}) {
    at(costs, Operation::gate_up) += product(*matrix, {}, rows);
  }
  at(costs, Operation::gate_up) += experts(w.gate);
  at(costs, Operation::gate_up) += experts(w.up);
  at(costs, Operation::down) += product(w.shared_down, {}, rows);
  at(costs, Operation::down) += experts(w.down);
}

std::string_view name(TimeBound::Unit unit) {
  switch (unit) {
    case TimeBound::Unit::memory:
      return "memory";
    case TimeBound::Unit::int8:
      return "int8";
    case TimeBound::Unit::half:
      return "half";
    case TimeBound::Unit::f32:
      return "f32";
    case TimeBound::Unit::none:
      break;
  }
  return "-";
}

TimeBound least_time(const OperationCost& cost, const MachineLimits& limits) {
  constexpr TimeBound::Unit kUnits[kArithmetics] = {TimeBound::Unit::int8, TimeBound::Unit::half,
                                                    TimeBound::Unit::f32};
  TimeBound bound;
  const auto bounded = [&](double seconds, TimeBound::Unit unit) {
    if (seconds > bound.seconds) bound = {seconds, unit};
  };
  if (limits.read_bytes > 0) {
    bounded(cost.bytes() / limits.read_bytes, TimeBound::Unit::memory);
  }
  // Units of different kinds share the ports: their times add up, the longest names the sum.
  double sum = 0;
  double longest = 0;
  TimeBound::Unit unit = TimeBound::Unit::none;
  for (std::size_t i = 0; i < kArithmetics; ++i) {
    if (limits.operations[i] <= 0) continue;
    const double seconds = cost.operations[i] / limits.operations[i];
    sum += seconds;
    if (seconds > longest) {
      longest = seconds;
      unit = kUnits[i];
    }
  }
  bounded(sum, unit);
  return bound;
}

}  // namespace edgerunner
