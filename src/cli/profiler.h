#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/operation_cost.h"
#include "cli/bare_model.h"

namespace edgerunner::cli {

// One operation of a phase, or all of them: time, what it had to do, and the least time for that.
struct ProfileLine {
  std::string operation;
  double seconds = 0;
  OperationCost cost;
  TimeBound bound;
};

// A prompt, or tokens decoded one after another: means of the repetitions.
struct PhaseProfile {
  std::string phase;  // "prefill" or "decode"
  std::uint32_t tokens = 0;
  std::uint32_t depth = 0;         // tokens in the cache before the first
  std::vector<ProfileLine> lines;  // in the order of a forward pass; what took no time is left out
  ProfileLine total;               // the sum of the lines
  std::array<double, 2> handover = {};  // before and after: Profilable::measure_handover
};

// Runs a model and accounts for its time. Every token is computed; they are made up, as a forward
// pass takes the same time whatever they are.
class Profiler {
 public:
  // `model` has been started. Measures the machine's limits, at most 2 s. Throws
  // Error(unsupported) where the backend has no timers.
  Profiler(BareModel& model, Executor& executor, std::uint32_t repetitions);

  const MachineLimits& limits() const { return limits_; }

  // In batches as large as the executor takes; logits of each batch's last token.
  PhaseProfile prefill(std::uint32_t tokens);
  // Each with its logits and the choice of the likeliest token.
  PhaseProfile decode(std::uint32_t tokens, std::uint32_t depth);

 private:
  // A batch of `count` tokens at `begin`; its cost is added to `costs` where that isn't null.
  void run(std::uint32_t begin, std::uint32_t count, OperationCosts* costs);
  void run_prompt(std::uint32_t tokens, OperationCosts* costs);
  template <typename Work>
  PhaseProfile measure(const Work& work);

  Executor* executor_;
  Profilable* backend_;
  CostModel model_;
  MachineLimits limits_;
  std::uint32_t repetitions_;
  const AdapterSet* adapters_;
  OperationTimes times_;
  std::vector<PageId> pages_;    // of the one sequence
  std::vector<TokenId> tokens_;  // [positions]
  std::vector<float> logits_;    // [vocab_size]
};

}  // namespace edgerunner::cli
