#pragma once

#include <array>

#include "arch/decoder.h"
#include "backend/executor.h"
#include "backend/operation_times.h"
#include "backend/profilable.h"

namespace edgerunner {

// What an operation can't do without, however it is written. Activations are not counted: they are
// small enough to stay in the caches.
struct OperationCost {
  double weight_bytes = 0;  // every matrix and vector, also of adapters, read once a batch
  double cache_bytes = 0;   // each key and value that a row sees read once a batch, or written
  std::array<double, kArithmetics> operations{};  // a multiply-add is two; by Arithmetic

  double bytes() const { return weight_bytes + cache_bytes; }
  double all_operations() const;
  OperationCost& operator+=(const OperationCost& other);
};

using OperationCosts = std::array<OperationCost, kOperations>;  // by Operation

// Counts what forward passes cost, from the shapes alone. After the keys and values of the last
// layer only the rows that want logits go on, as none else can be seen.
class CostModel {
 public:
  // `cache_token_bytes`: what a token takes in the KV cache. Decoder and backend must outlive it.
  CostModel(const Decoder& decoder, const Profilable& backend, double cache_token_bytes);

  void add(const Batch& batch, OperationCosts& costs) const;

 private:
  struct Work;
  struct AdapterRows;

  void add_layer(const Work& work, std::size_t layer, OperationCosts& costs) const;
  void add_mixture(const MixtureSpec& spec, const MixtureWeights& w, std::uint32_t rows,
                   OperationCosts& costs) const;
  void add_adapter(const AdapterRows& rows, OperationCosts& costs) const;
  // A product of `rows` rows, and its bias.
  OperationCost product(const Matrix& weights, const Vector& bias, std::uint32_t rows) const;
  static OperationCost norm(const Vector& weights, std::uint32_t dims, std::uint32_t rows);

  const Decoder* decoder_;
  const Profilable* backend_;
  double cache_value_bytes_;  // of one number in the cache
};

// The least time that the machine's limits allow for a cost, and the limit that sets it.
struct TimeBound {
  double seconds = 0;
  enum class Unit : std::uint8_t { none, memory, int8, half, f32 } unit = Unit::none;
};
std::string_view name(TimeBound::Unit unit);
TimeBound least_time(const OperationCost& cost, const MachineLimits& limits);

}  // namespace edgerunner
