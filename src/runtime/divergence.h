#pragma once

#include <span>

#include "edgerunner/types.h"

namespace edgerunner {

// -log of the probability that logits give to a token: softmax in double.
double negative_log_likelihood(std::span<const float> logits, TokenId token);

// How far logits are from those that were expected at the same place.
struct Divergence {
  double difference = 0;  // largest |difference| of a logit
  double kl = 0;         // Kullback-Leibler: sum of p log(p / q), p the expected distribution; nats
  bool same_top = true;  // the likeliest token is the same
};
Divergence divergence(std::span<const float> expected, std::span<const float> got);

// By how much the largest value exceeds the second largest; there are at least two.
double top_gap(std::span<const float> logits);

}  // namespace edgerunner
