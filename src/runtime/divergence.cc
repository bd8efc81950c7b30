#include "runtime/divergence.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/arg_max.h"

namespace edgerunner {
namespace {

// log of the sum of e^logit.
double log_sum(std::span<const float> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return largest + std::log(sum);
}

}  // namespace

double negative_log_likelihood(std::span<const float> logits, TokenId token) {
  return log_sum(logits) - static_cast<double>(logits[static_cast<std::size_t>(token)]);
}

Divergence divergence(std::span<const float> expected, std::span<const float> got) {
  Divergence result;
  const double expected_sum = log_sum(expected);
  const double got_sum = log_sum(got);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double log_p = static_cast<double>(expected[i]) - expected_sum;
    const double log_q = static_cast<double>(got[i]) - got_sum;
    result.kl += std::exp(log_p) * (log_p - log_q);
    const double difference = std::abs(static_cast<double>(expected[i]) - got[i]);
    // Not std::max, which would pass over what is not a number.
    if (!(difference <= result.difference)) result.difference = difference;
  }
  result.same_top = arg_max(expected).token == arg_max(got).token;
  return result;
}

double top_gap(std::span<const float> logits) {
  float first = -std::numeric_limits<float>::infinity();
  float second = first;
  for (const float logit : logits) {
    if (logit > first) {
      second = first;
      first = logit;
    } else if (logit > second) {
      second = logit;
    }
  }
  return static_cast<double>(first) - second;
}

}  // namespace edgerunner
