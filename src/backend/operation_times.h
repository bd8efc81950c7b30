#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace edgerunner {

// The operations of a decoder's forward pass, in their order, as `profile` reports them. What a
// backend fuses across their borders counts where most of its time goes.
enum class Operation : std::uint8_t {
  embedding,         // rows of the token table, dequantised
  attention_norm,    // norm before q, k and v, and their operand's preparation
  qkv,               // the three products
  rope_and_cache,    // rotation of keys, writing of keys and values
  attention,         // scores, softmax, weighted values
  attention_output,  // its product and the residual
  ffn_norm,          // norm before gate and up, and their operand's preparation
  gate_up,           // both products and the activation
  down,              // its product and the residual
  head,              // last norm, logits
  sampling,          // choice of the next token, by the caller or the backend
  other,             // what stands between: starting threads, launching, checks
};
inline constexpr std::size_t kOperations = 12;

// "q, k, v"
std::string_view name(Operation operation);

// Where the time of forward passes went, by operation: a stopwatch with laps, so that the parts add
// up to the whole. Used by one thread at a time.
class OperationTimes {
 public:
  void clear() { *this = {}; }

  // A forward pass begins.
  void begin();
  // What has passed since begin() or the latest lap was spent on `operation`.
  void lap(Operation operation);
  // The same for who measures by other means, as a device's timers.
  void add(Operation operation, double seconds) { seconds_[index(operation)] += seconds; }

  double seconds(Operation operation) const { return seconds_[index(operation)]; }
  double total() const;
  std::uint64_t passes() const { return passes_; }

 private:
  static std::size_t index(Operation operation) { return static_cast<std::size_t>(operation); }

  std::array<double, kOperations> seconds_{};
  std::uint64_t passes_ = 0;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace edgerunner
