#include "cli/throughput.h"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace edgerunner::cli {

ThroughputMeter::ThroughputMeter(Executor& executor, std::uint32_t vocab_size,
                                 std::uint32_t repetitions)
    : executor_(&executor),
      repetitions_(repetitions),
      pages_(executor.options().pages),
      tokens_(std::size_t{executor.options().pages} * kPageTokens),
      logits_(vocab_size) {
  std::iota(pages_.begin(), pages_.end(), PageId{0});
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    tokens_[i] = static_cast<TokenId>((i * 7919 + 13) % vocab_size);  // spread over the embedding
  }
}

void ThroughputMeter::run(std::uint32_t begin, std::uint32_t count) {
  const std::uint32_t last_row = count - 1;
  const SequenceSlice slice{.rows = count, .start = begin, .pages = pages_};
  executor_->forward({.tokens = std::span(tokens_).subspan(begin, count),
                      .sequences = {&slice, 1},
                      .logit_rows = {&last_row, 1}},
                     logits_);
}

void ThroughputMeter::run_prompt(std::uint32_t tokens) {
  const std::uint32_t most = executor_->options().max_rows;
  for (std::uint32_t begin = 0; begin < tokens; begin += most) {
    run(begin, std::min(most, tokens - begin));
  }
}

template <typename Work>
Throughput ThroughputMeter::measure(std::uint32_t tokens, const Work& work) {
  work();  // warm: pages of the file read, caches filled, clocks up
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
  return result;
}

Throughput ThroughputMeter::prefill(std::uint32_t tokens) {
  Throughput result = measure(tokens, [&] { run_prompt(tokens); });
  result.test = "prefill";
  return result;
}

Throughput ThroughputMeter::decode(std::uint32_t tokens, std::uint32_t depth) {
  run_prompt(depth);
  Throughput result = measure(tokens, [&] {
    for (std::uint32_t i = 0; i < tokens; ++i) run(depth + i, 1);
  });
  result.test = "decode";
  result.depth = depth;
  return result;
}

}  // namespace edgerunner::cli
