#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backend/executor.h"

namespace edgerunner::cli {

// Tokens a second of one test, of all sequences together: the median, least and most of its
// repetitions.
struct Throughput {
  std::string test;          // "prefill", "decode" or "check"
  std::uint32_t tokens = 0;  // of each sequence
  std::uint32_t depth = 0;   // tokens in the cache before the first
  std::uint32_t sequences = 1;
  std::uint32_t drafted = 0;  // tokens of each step that were guessed ahead
  double tps = 0;
  double tps_min = 0;
  double tps_max = 0;
  std::array<double, 2> handover = {};  // before and after: Profilable::measure_handover
};

// Times an executor. Every token is computed: nothing is reused between tests or repetitions. A
// forward pass takes the same time whatever its tokens are, so they are made up.
class ThroughputMeter {
 public:
  // `adapters` apply to every sequence, or null.
  ThroughputMeter(Executor& executor, std::uint32_t vocab_size, std::uint32_t repetitions,
                  const AdapterSet* adapters = nullptr);

  // A prompt of `tokens` tokens from an empty cache, in batches as large as the executor takes;
  // logits of the last one.
  Throughput prefill(std::uint32_t tokens);

  // `tokens` tokens one after another, each with its logits, behind `depth` tokens; in `sequences`
  // sequences at once, a row of each in every forward pass. Where the backend chooses tokens
  // itself, it does, greedily and in bursts, as in generating.
  Throughput decode(std::uint32_t tokens, std::uint32_t depth, std::uint32_t sequences);

  // `steps` steps of speculative decoding behind `depth` tokens: a row and `drafted` guesses of one
  // sequence in each, all with their logits. Tokens a second are those where every guess is right.
  Throughput check(std::uint32_t steps, std::uint32_t depth, std::uint32_t drafted);

 private:
  std::span<const PageId> pages_of(std::uint32_t sequence) const;
  void run_prompt(std::uint32_t tokens, std::uint32_t sequence);
  void run_steps(std::uint32_t position, std::uint32_t count, std::uint32_t sequences);
  Batch step(std::uint32_t position, std::uint32_t sequences);
  template <typename Work>
  Throughput measure(std::uint32_t tokens, const Work& work);

  Executor* executor_;
  std::uint32_t repetitions_;
  const AdapterSet* adapters_;
  std::vector<PageId> pages_;        // [sequences, pages of a sequence]
  std::vector<TokenId> tokens_;      // [pages, kPageTokens], made up
  std::vector<float> logits_;        // [sequences, vocab_size]
  std::vector<TokenId> row_tokens_;  // of a step, a row a sequence
  std::vector<SequenceSlice> slices_;
  std::vector<std::uint32_t> rows_;  // 0, 1, ...
  std::vector<TokenId> chosen_;      // [steps, sequences]
};

}  // namespace edgerunner::cli
