#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "edgerunner/types.h"

namespace edgerunner {

// How the next token is chosen. The order of the steps is: logit bias, penalties, temperature,
// top-k, top-p, min-p, then one draw. docs/architecture.md documents the generator.
struct SamplingOptions {
  float temperature = 0.0F;          // 0 is greedy
  std::int32_t top_k = 0;            // 0: off
  float top_p = 1.0F;                // 1: off
  float min_p = 0.0F;                // 0: off
  float repeat_penalty = 1.0F;       // 1: off
  float frequency_penalty = 0.0F;    // subtracted once for each time that the token occurred
  float presence_penalty = 0.0F;     // subtracted once if the token occurred
  std::int32_t penalty_last_n = 64;  // tokens that the penalties look back on; -1: all
  std::vector<std::pair<TokenId, float>> logit_bias;
  std::uint64_t seed = 0;
};

}  // namespace edgerunner
