#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/generation_sink.h"

namespace edgerunner {

// The logarithm of the sum of e^logit, by which logits become logarithms of probabilities.
double log_sum_exp(std::span<const float> logits);

// The `count` largest logits less `log_sum`, the largest first; of equals, the lowest id.
std::vector<TokenLogprob> likeliest_tokens(std::span<const float> logits, double log_sum,
                                           std::uint32_t count);

}  // namespace edgerunner
