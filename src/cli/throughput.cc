#include "cli/throughput.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "backend/profilable.h"
#include "backend/token_chooser.h"
#include "runtime/burst_length.h"

namespace edgerunner::cli {
namespace {

const SamplingOptions kGreedy;

}  // namespace

ThroughputMeter::ThroughputMeter(Executor& executor, std::uint32_t vocab_size,
                                 std::uint32_t repetitions, const AdapterSet* adapters)
    : executor_(&executor),
      repetitions_(repetitions),
      adapters_(adapters),
      pages_(executor.options().pages),
      tokens_(std::size_t{executor.options().pages} * kPageTokens),
      logits_(std::size_t{executor.options().max_logit_rows} * vocab_size),
      rows_(executor.options().max_logit_rows) {
  std::iota(pages_.begin(), pages_.end(), PageId{0});
  std::iota(rows_.begin(), rows_.end(), 0U);
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    tokens_[i] = static_cast<TokenId>((i * 7919 + 13) % vocab_size);  // spread over the embedding
  }
}

std::span<const PageId> ThroughputMeter::pages_of(std::uint32_t sequence) const {
  const std::size_t count = pages_for(executor_->options().max_context);
  return std::span(pages_).subspan(sequence * count, count);
}

void ThroughputMeter::run_prompt(std::uint32_t tokens, std::uint32_t sequence) {
  const std::uint32_t most = executor_->options().max_rows;
  const std::span<const PageId> pages = pages_of(sequence);
  const std::size_t first = std::size_t{pages.front()} * kPageTokens;
  for (std::uint32_t begin = 0; begin < tokens; begin += most) {
    const std::uint32_t count = std::min(most, tokens - begin);
    const std::uint32_t last_row = count - 1;
    const SequenceSlice slice{.rows = count, .start = begin, .pages = pages, .adapters = adapters_};
    executor_->forward({.tokens = std::span(tokens_).subspan(first + begin, count),
                        .sequences = {&slice, 1},
                        .logit_rows = {&last_row, 1}},
                       std::span(logits_).first(logits_.size() / rows_.size()));
  }
}

void ThroughputMeter::run_steps(std::uint32_t position, std::uint32_t count,
                                std::uint32_t sequences) {
  TokenChooser* const chooser = executor_->chooser();
  const bool chosen_there = chooser != nullptr && chooser->can_choose(kGreedy);
  BurstLength burst;
  for (std::uint32_t done = 0; done < count;) {
    const Batch batch = step(position + done, sequences);
    if (!chosen_there) {
      executor_->forward(batch,
                         std::span(logits_).first(logits_.size() / rows_.size() * sequences));
      ++done;
      continue;
    }
    const auto start = std::chrono::steady_clock::now();
    const std::uint32_t steps = std::min(burst.next(chooser->most_steps()), count - done);
    const std::vector<TokenChoice> choices(sequences, TokenChoice{&kGreedy, {}, done});
    chosen_.resize(std::size_t{steps} * sequences);
    chooser->choose(batch, choices, steps, chosen_);
    burst.took(steps, std::chrono::steady_clock::now() - start);
    done += steps;
  }
}

Batch ThroughputMeter::step(std::uint32_t position, std::uint32_t sequences) {
  row_tokens_.clear();
  slices_.clear();
  for (std::uint32_t i = 0; i < sequences; ++i) {
    const std::span<const PageId> pages = pages_of(i);
    row_tokens_.push_back(tokens_[std::size_t{pages.front()} * kPageTokens + position]);
    slices_.push_back({.rows = 1, .start = position, .pages = pages, .adapters = adapters_});
  }
  return {
      .tokens = row_tokens_, .sequences = slices_, .logit_rows = std::span(rows_).first(sequences)};
}

template <typename Work>
Throughput ThroughputMeter::measure(std::uint32_t tokens, const Work& work) {
  work();  // warm: pages of the file read, caches filled, clocks up
  const auto handover = [&] {
    Profilable* const backend = executor_->profilable();
    return backend == nullptr ? 0.0 : backend->measure_handover();
  };
  const double before = handover();
  std::vector<double> rates;
  for (std::uint32_t i = 0; i < repetitions_; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    rates.push_back(tokens / time.count());
  }
  std::sort(rates.begin(), rates.end());
  const std::size_t middle = rates.size() / 2;
  Throughput result;
  result.tokens = tokens;
  result.tps = rates.size() % 2 == 1 ? rates[middle] : (rates[middle - 1] + rates[middle]) / 2;
  result.tps_min = rates.front();
  result.tps_max = rates.back();
  result.handover = {before, handover()};
  return result;
}

Throughput ThroughputMeter::prefill(std::uint32_t tokens) {
  Throughput result = measure(tokens, [&] { run_prompt(tokens, 0); });
  result.test = "prefill";
  return result;
}

Throughput ThroughputMeter::decode(std::uint32_t tokens, std::uint32_t depth,
                                   std::uint32_t sequences) {
  for (std::uint32_t i = 0; i < sequences; ++i) run_prompt(depth, i);
  Throughput result = measure(tokens * sequences, [&] { run_steps(depth, tokens, sequences); });
  result.test = "decode";
  result.tokens = tokens;
  result.depth = depth;
  result.sequences = sequences;
  return result;
}

Throughput ThroughputMeter::check(std::uint32_t steps, std::uint32_t depth, std::uint32_t drafted) {
  run_prompt(depth, 0);
  const std::uint32_t count = 1 + drafted;
  const SequenceSlice slice{
      .rows = count, .start = depth, .pages = pages_of(0), .adapters = adapters_};
  const Batch batch{.tokens = std::span(tokens_).subspan(depth, count),
                    .sequences = {&slice, 1},
                    .logit_rows = std::span(rows_).first(count)};
  const std::span<float> logits = std::span(logits_).first(logits_.size() / rows_.size() * count);
  Throughput result = measure(steps * count, [&] {
    for (std::uint32_t step = 0; step < steps; ++step) executor_->forward(batch, logits);
  });
  result.test = "check";
  result.tokens = steps;
  result.depth = depth;
  result.drafted = drafted;
  return result;
}

}  // namespace edgerunner::cli
