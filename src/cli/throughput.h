#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/executor.h"

namespace edgerunner::cli {

// Tokens a second of one test: the median, least and most of its repetitions.
struct Throughput {
  std::string test;  // "prefill" or "decode"
  std::uint32_t tokens = 0;
  std::uint32_t depth = 0;  // tokens in the cache before the first
  double tps = 0;
  double tps_min = 0;
  double tps_max = 0;
};

// Times an executor. Every token is computed: nothing is reused between tests or repetitions. A
// forward pass takes the same time whatever its tokens are, so they are made up.
class ThroughputMeter {
 public:
  ThroughputMeter(Executor& executor, std::uint32_t vocab_size, std::uint32_t repetitions);

  // A prompt of `tokens` tokens from an empty cache, in batches as large as the executor takes;
  // logits of the last one.
  Throughput prefill(std::uint32_t tokens);

  // `tokens` tokens one after another, each with its logits, behind `depth` tokens.
  Throughput decode(std::uint32_t tokens, std::uint32_t depth);

 private:
  void run(std::uint32_t begin, std::uint32_t count);
  void run_prompt(std::uint32_t tokens);
  template <typename Work>
  Throughput measure(std::uint32_t tokens, const Work& work);

  Executor* executor_;
  std::uint32_t repetitions_;
  std::vector<PageId> pages_;    // of the one sequence
  std::vector<TokenId> tokens_;  // [positions]
  std::vector<float> logits_;    // [vocab_size]
};

}  // namespace edgerunner::cli
