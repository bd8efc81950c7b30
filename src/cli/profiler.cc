#include "cli/profiler.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "edgerunner/error.h"
#include "runtime/arg_max.h"

namespace edgerunner::cli {
namespace {

Profilable& profilable(Executor& executor) {
  Profilable* const backend = executor.profilable();
  if (backend != nullptr) return *backend;
  throw Error(ErrorCode::unsupported,
              fmt::format("the {} backend has no timers to profile; use --backend cpu",
                          executor.info().backend));
}

// Stops the recording where it ends, however it ends.
class Recording {
 public:
  Recording(Profilable& backend, OperationTimes& times) : backend_(&backend) {
    times.clear();
    backend.record(&times);
  }
  ~Recording() { backend_->record(nullptr); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  Profilable* backend_;
};

}  // namespace

Profiler::Profiler(BareModel& model, Executor& executor, std::uint32_t repetitions)
    : executor_(&executor),
      backend_(&profilable(executor)),
      model_(model.decoder(), *backend_, model.cache_token_bytes()),
      limits_(backend_->measure_limits()),
      repetitions_(repetitions),
      adapters_(model.adapters()),
      pages_(executor.options().pages),
      tokens_(std::size_t{executor.options().pages} * kPageTokens),
      logits_(model.spec().vocab_size) {
  std::iota(pages_.begin(), pages_.end(), PageId{0});
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    // Spread over the embedding.
    tokens_[i] = static_cast<TokenId>((i * 7919 + 13) % model.spec().vocab_size);
  }
}

void Profiler::run(std::uint32_t begin, std::uint32_t count, OperationCosts* costs) {
  const std::uint32_t last_row = count - 1;
  const SequenceSlice slice{.rows = count, .start = begin, .pages = pages_, .adapters = adapters_};
  const Batch batch{.tokens = std::span(tokens_).subspan(begin, count),
                    .sequences = {&slice, 1},
                    .logit_rows = {&last_row, 1}};
  if (costs != nullptr) model_.add(batch, *costs);
  executor_->forward(batch, logits_);
}

void Profiler::run_prompt(std::uint32_t tokens, OperationCosts* costs) {
  const std::uint32_t most = executor_->options().max_rows;
  for (std::uint32_t begin = 0; begin < tokens; begin += most) {
    run(begin, std::min(most, tokens - begin), costs);
  }
}

template <typename Work>
PhaseProfile Profiler::measure(const Work& work) {
  OperationCosts costs{};
  work(&costs);  // warms up too: pages of the file read, caches filled, clocks up
  const double before = backend_->measure_handover();
  double wall = 0;
  {
    const Recording recording(*backend_, times_);
    const auto start = std::chrono::steady_clock::now();
    for (std::uint32_t i = 0; i < repetitions_; ++i) work(nullptr);
    wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  times_.add(Operation::other, std::max(0.0, wall - times_.total()));

  PhaseProfile profile;
  profile.handover = {before, backend_->measure_handover()};
  profile.total.operation = "total";
  for (std::size_t i = 0; i < kOperations; ++i) {
    const auto operation = static_cast<Operation>(i);
    const double seconds = times_.seconds(operation) / repetitions_;
    if (seconds == 0) continue;
    const TimeBound bound = least_time(costs[i], limits_);
    profile.lines.push_back({std::string(name(operation)), seconds, costs[i], bound});
    profile.total.seconds += seconds;
    profile.total.cost += costs[i];
    profile.total.bound.seconds += bound.seconds;
  }
  // The unit that bounds most of the least time names the total's.
  std::array<double, 5> by_unit{};
  for (const ProfileLine& line : profile.lines) {
    by_unit[static_cast<std::size_t>(line.bound.unit)] += line.bound.seconds;
  }
  profile.total.bound.unit = static_cast<TimeBound::Unit>(
      std::max_element(by_unit.begin(), by_unit.end()) - by_unit.begin());
  return profile;
}

PhaseProfile Profiler::prefill(std::uint32_t tokens) {
  PhaseProfile profile = measure([&](OperationCosts* costs) { run_prompt(tokens, costs); });
  profile.phase = "prefill";
  profile.tokens = tokens;
  return profile;
}

PhaseProfile Profiler::decode(std::uint32_t tokens, std::uint32_t depth) {
  run_prompt(depth, nullptr);
  PhaseProfile profile = measure([&](OperationCosts* costs) {
    for (std::uint32_t i = 0; i < tokens; ++i) {
      run(depth + i, 1, costs);
      static_cast<void>(arg_max(logits_));
      if (costs == nullptr) times_.lap(Operation::sampling);
    }
  });
  profile.phase = "decode";
  profile.tokens = tokens;
  profile.depth = depth;
  return profile;
}

}  // namespace edgerunner::cli
