#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "edgerunner/sampling.h"
#include "edgerunner/types.h"

namespace edgerunner {

// Throws Error(invalid_argument) naming the option that is out of range.
void check_sampling_options(const SamplingOptions& options, std::uint32_t vocab_size);

// Chooses tokens from logits, in the order of steps that edgerunner/sampling.h states. Holds
// scratch only: what it draws depends on its arguments alone.
class Sampler {
 public:
  // Checks the options.
  Sampler(const SamplingOptions& options, std::uint32_t vocab_size);

  // The token after `history` (prompt and output so far), which is number `index` of its
  // sequence. `logits`, [vocab_size], is used as scratch and left changed. Throws Error(device)
  // where a logit is not finite. `allowed`, a bit for each token, lowest first, says which may be
  // chosen (those beyond it may not); empty: all.
  TokenId sample(std::span<float> logits, std::span<const TokenId> history, std::uint64_t index,
                 std::span<const std::uint64_t> allowed = {});

 private:
  struct Candidate {
    float logit;
    TokenId token;
    float weight;  // e^((logit - largest) / temperature)
  };
  static bool before(const Candidate& a, const Candidate& b);

  void add_bias(std::span<float> logits) const;
  static void ban_others(std::span<float> logits, std::span<const std::uint64_t> allowed);
  void penalise(std::span<float> logits, std::span<const TokenId> history);
  void collect_top_k(std::span<const float> logits, float largest);
  double collect_all(std::span<const float> logits, float largest);
  void keep_top_p(double total);
  void keep_min_p();
  TokenId draw(std::uint64_t index) const;

  SamplingOptions options_;
  std::vector<std::uint32_t> counts_;  // [vocab_size], all 0 between calls; empty if no penalties
  std::vector<float> weights_;         // [vocab_size], where the whole vocabulary is weighed
  std::vector<Candidate> candidates_;
};

}  // namespace edgerunner
