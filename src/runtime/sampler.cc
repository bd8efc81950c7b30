#include "runtime/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

#include "base/exponential.h"
#include "base/random.h"
#include "edgerunner/error.h"
#include "runtime/arg_max.h"

namespace edgerunner {
namespace {

void require(bool ok, std::string_view option, double value, std::string_view range) {
  if (ok) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} is {}; it must be {}", option, value, range));
}

float weight(float logit, float largest, float temperature) {
  return exp_of_negative((logit - largest) / temperature);
}

// A loop over plain arrays and values, which the compiler turns into vector instructions.
void weigh(const float* __restrict logits, float* __restrict weights, std::size_t count,
           float largest, float temperature) {
  for (std::size_t i = 0; i < count; ++i) weights[i] = weight(logits[i], largest, temperature);
}

// In eight sums, so that an addition need not wait for the one before it.
double sum(std::span<const float> values) {
  std::array<double, 8> sums{};
  std::size_t i = 0;
  for (; i + sums.size() <= values.size(); i += sums.size()) {
    for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += values[i + j];
  }
  for (; i < values.size(); ++i) sums[0] += values[i];
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace

void check_sampling_options(const SamplingOptions& o, std::uint32_t vocab_size) {
  require(std::isfinite(o.temperature) && o.temperature >= 0, "temperature", o.temperature,
          "0 (greedy) or a positive number");
  require(o.top_k >= 0, "top_k", o.top_k, "0 (off) or a positive number");
  require(o.top_p >= 0 && o.top_p <= 1, "top_p", o.top_p, "from 0 to 1 (off)");
  require(o.min_p >= 0 && o.min_p <= 1, "min_p", o.min_p, "from 0 (off) to 1");
  require(std::isfinite(o.repeat_penalty) && o.repeat_penalty > 0, "repeat_penalty",
          o.repeat_penalty, "a positive number (1 is off)");
  require(std::isfinite(o.frequency_penalty), "frequency_penalty", o.frequency_penalty, "finite");
  require(std::isfinite(o.presence_penalty), "presence_penalty", o.presence_penalty, "finite");
  require(o.penalty_last_n >= -1, "penalty_last_n", o.penalty_last_n, "-1 (all) or more");
  for (const auto& [token, bias] : o.logit_bias) {
    require(token >= 0 && static_cast<std::uint32_t>(token) < vocab_size, "logit_bias token", token,
            fmt::format("a token of the vocabulary, under {}", vocab_size));
    require(std::isfinite(bias) || (std::isinf(bias) && bias < 0), "logit_bias", bias,
            "finite, or -infinity to ban a token");
  }
}

Sampler::Sampler(const SamplingOptions& options, std::uint32_t vocab_size) : options_(options) {
  check_sampling_options(options, vocab_size);
  const bool penalties = options.repeat_penalty != 1.0F || options.frequency_penalty != 0.0F ||
                         options.presence_penalty != 0.0F;
  if (penalties && options.penalty_last_n != 0) counts_.assign(vocab_size, 0);
}

TokenId Sampler::sample(std::span<float> logits, std::span<const TokenId> history,
                        std::uint64_t index, std::span<const std::uint64_t> allowed) {
  if (!all_finite(logits)) {
    throw Error(ErrorCode::device,
                "the model's logits are not finite; the file may be damaged, or its values too "
                "large for this precision (try --precision exact)");
  }
  add_bias(logits);
  penalise(logits, history);
  if (!allowed.empty()) ban_others(logits, allowed);
  const float largest = max_value(logits);
  if (std::isinf(largest)) {
    throw Error(ErrorCode::invalid_argument, "logit_bias bans every token that may come");
  }
  if (options_.temperature == 0) {
    return static_cast<TokenId>(std::find(logits.begin(), logits.end(), largest) - logits.begin());
  }
  candidates_.clear();
  double total = 0;
  if (options_.top_k > 0 && static_cast<std::size_t>(options_.top_k) < logits.size()) {
    collect_top_k(logits, largest);
    for (const Candidate& c : candidates_) total += c.weight;
  } else {
    total = collect_all(logits, largest);
  }
  if (options_.top_p < 1) keep_top_p(total);
  if (options_.min_p > 0) keep_min_p();
  return draw(index);
}

// By falling logit, then by rising id: a total order, so that ties are the same everywhere.
bool Sampler::before(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

void Sampler::add_bias(std::span<float> logits) const {
  for (const auto& [token, bias] : options_.logit_bias) logits[token] += bias;
}

void Sampler::ban_others(std::span<float> logits, std::span<const std::uint64_t> allowed) {
  constexpr float kBanned = -std::numeric_limits<float>::infinity();
  for (std::size_t word = 0; word * 64 < logits.size(); ++word) {
    const std::uint64_t bits = word < allowed.size() ? allowed[word] : 0;
    if (bits == ~std::uint64_t{0}) continue;
    const std::span<float> part =
        logits.subspan(word * 64, std::min<std::size_t>(64, logits.size() - word * 64));
    for (std::size_t i = 0; i < part.size(); ++i) {
      if ((bits >> i & 1) == 0) part[i] = kBanned;
    }
  }
}

void Sampler::penalise(std::span<float> logits, std::span<const TokenId> history) {
  if (counts_.empty()) return;
  const auto last_n = static_cast<std::size_t>(options_.penalty_last_n);
  if (options_.penalty_last_n > 0 && history.size() > last_n) history = history.last(last_n);
  for (const TokenId token : history) ++counts_[token];
  for (const TokenId token : history) {
    const auto count = static_cast<float>(counts_[token]);
    if (count == 0) continue;  // done at an earlier occurrence
    counts_[token] = 0;
    float& logit = logits[token];
    // Keskar et al. 2019 (CTRL), with the sign minded as all implementations do.
    logit = logit > 0 ? logit / options_.repeat_penalty : logit * options_.repeat_penalty;
    logit -= count * options_.frequency_penalty + options_.presence_penalty;
  }
}

// A heap of the k best so far, the worst on top: random logits displace it about k ln(n/k) times,
// far fewer operations than sorting a vocabulary.
void Sampler::collect_top_k(std::span<const float> logits, float largest) {
  const auto k = static_cast<std::size_t>(options_.top_k);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (candidates_.size() == k && logits[i] <= candidates_.front().logit) continue;
    if (candidates_.size() == k) {
      std::pop_heap(candidates_.begin(), candidates_.end(), before);
      candidates_.pop_back();
    }
    candidates_.push_back({logits[i], static_cast<TokenId>(i), 0});
    std::push_heap(candidates_.begin(), candidates_.end(), before);
  }
  std::sort(candidates_.begin(), candidates_.end(), before);
  for (Candidate& c : candidates_) c.weight = weight(c.logit, largest, options_.temperature);
}

// The whole vocabulary, less what top_p or min_p can't keep: tokens lighter than
// (1 - top_p) * total / n weigh at most (1 - top_p) * total together, so none of them is in the
// set that top_p keeps. What is left to order is small unless the distribution is flat.
double Sampler::collect_all(std::span<const float> logits, float largest) {
  weights_.resize(logits.size());
  weigh(logits.data(), weights_.data(), logits.size(), largest, options_.temperature);
  const double total = sum(weights_);
  const double share = (1.0 - options_.top_p) * total / static_cast<double>(logits.size());
  const double floor = std::max(share * (1 - 1e-6), static_cast<double>(options_.min_p));
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (weights_[i] < floor || weights_[i] == 0) continue;
    candidates_.push_back({logits[i], static_cast<TokenId>(i), weights_[i]});
  }
  return total;
}

// The fewest likeliest candidates whose probabilities add up to top_p, the likeliest first.
void Sampler::keep_top_p(double total) {
  const double wanted = static_cast<double>(options_.top_p) * total;
  const auto after = [](const Candidate& a, const Candidate& b) { return before(b, a); };
  std::make_heap(candidates_.begin(), candidates_.end(), after);  // the likeliest on top
  double sum = 0;
  auto rest = candidates_.end();
  do {
    std::pop_heap(candidates_.begin(), rest, after);
    --rest;
    sum += rest->weight;
  } while (sum < wanted && rest != candidates_.begin());
  candidates_.erase(candidates_.begin(), rest);
  std::reverse(candidates_.begin(), candidates_.end());
}

void Sampler::keep_min_p() {
  const float floor = options_.min_p;  // the likeliest weighs 1
  std::erase_if(candidates_, [floor](const Candidate& c) { return c.weight < floor; });
}

TokenId Sampler::draw(std::uint64_t index) const {
  double total = 0;
  for (const Candidate& c : candidates_) total += c.weight;
  double left = uniform_at(options_.seed, index) * total;
  TokenId last = kNoToken;
  for (const Candidate& c : candidates_) {
    if (c.weight == 0) continue;
    last = c.token;
    left -= c.weight;
    if (left < 0) break;
  }
  return last;
}

}  // namespace edgerunner
