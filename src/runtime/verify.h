#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/executor.h"

namespace edgerunner {

// How far an executor may be from the reference on a model.
struct VerifyBounds {
  double error = 0;    // largest difference of a logit, as a fraction of the largest logit
  double mean_kl = 0;  // KL divergence from the reference, mean of the positions, in nats
};

// What docs/numerics.md promises of a precision with a cache precision.
VerifyBounds default_bounds(Precision precision, KvPrecision kv);

struct PositionReport {
  std::uint32_t position = 0;
  double error = 0;  // as a fraction of the largest logit of all positions
  double kl = 0;
  bool same_top = true;
};

// Where greedy texts part: the token's number in the continuation, what each chose, and by how much
// the reference's likeliest token was ahead, as a fraction of the largest logit.
struct GreedyDivergence {
  std::uint32_t index = 0;
  TokenId expected = kNoToken;
  TokenId got = kNoToken;
  double gap = 0;
};

struct VerifyReport {
  std::vector<PositionReport> positions;
  double largest_logit = 0;  // of the reference
  double error = 0;
  double mean_kl = 0;
  double largest_kl = 0;
  double top1_agreement = 0;  // fraction of the positions
  std::uint32_t greedy_tokens = 0;
  std::optional<GreedyDivergence> diverged;
  std::vector<std::string> failures;  // what is out of bounds, in words; none: it passes
};

// Runs `tokens` on both, compares the logits of every position, then lets both continue greedily by
// `greedy_tokens` tokens. Texts may part only where the reference's two likeliest tokens are so
// close that errors within the bound turn them around. Both caches must hold tokens and
// continuation. `progress` is told what is done, as a fraction. `adapters` apply on both, or null.
VerifyReport verify(Executor& reference, Executor& tested, std::uint32_t vocab_size,
                    std::span<const TokenId> tokens, std::uint32_t greedy_tokens,
                    const VerifyBounds& bounds, const std::function<void(double)>& progress,
                    const AdapterSet* adapters = nullptr);

}  // namespace edgerunner
