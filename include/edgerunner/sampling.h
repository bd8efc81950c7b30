#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "edgerunner/types.h"

namespace edgerunner {

// How the next token is chosen from the model's logits, in this order:
// 1. logit_bias is added.
// 2. Penalties, for tokens among the last penalty_last_n of the sequence (prompt and output): a
//    positive logit is divided by repeat_penalty and a negative one multiplied; then
//    frequency_penalty times the number of occurrences and presence_penalty are subtracted.
// 3. Where temperature is 0, the largest logit is taken, of equals the lowest id. Else logits are
//    divided by it.
// 4. The top_k largest are kept; of these the fewest likeliest whose probabilities add up to top_p;
//    of these the ones at least min_p times as likely as the likeliest.
// 5. One is drawn by its probability among those left, with a number of [0, 1) that is a function
//    of the seed and the token's index in its sequence alone: output number `index` of SplitMix64
//    (Steele, Lea and Flood 2014) started from the mixed seed. The same seed gives the same text,
//    whatever else the process does.
// Logits that are not finite are an Error(device), never a token. An option out of its range is an
// Error(invalid_argument) that names it.
struct SamplingOptions {
  float temperature = 0.0F;                           // 0: greedy
  std::int32_t top_k = 0;                             // 0: off
  float top_p = 1.0F;                                 // from 0 to 1; 1: off
  float min_p = 0.0F;                                 // from 0 to 1; 0: off
  float repeat_penalty = 1.0F;                        // positive; 1: off
  float frequency_penalty = 0.0F;                     // any finite number; 0: off
  float presence_penalty = 0.0F;                      // any finite number; 0: off
  std::int32_t penalty_last_n = 64;                   // -1: all tokens
  std::vector<std::pair<TokenId, float>> logit_bias;  // -infinity bans a token
  std::uint64_t seed = 0;
};

}  // namespace edgerunner
