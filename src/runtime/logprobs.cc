#include "runtime/logprobs.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "runtime/arg_max.h"

namespace edgerunner {

double log_sum_exp(std::span<const float> logits) {
  const double largest = max_value(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

std::vector<TokenLogprob> likeliest_tokens(std::span<const float> logits, double log_sum,
                                           std::uint32_t count) {
  const auto before = [logits](TokenId a, TokenId b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  };
  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), TokenId{0});
  const auto kept = ids.begin() + std::min<std::ptrdiff_t>(count, std::ssize(ids));
  std::partial_sort(ids.begin(), kept, ids.end(), before);
  std::vector<TokenLogprob> likeliest;
  for (auto id = ids.begin(); id != kept; ++id) {
    likeliest.push_back({.token = *id, .logprob = static_cast<float>(logits[*id] - log_sum)});
  }
  return likeliest;
}

}  // namespace edgerunner
