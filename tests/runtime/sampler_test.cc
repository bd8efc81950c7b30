#include "runtime/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>

#include "base/exponential.h"
#include "base/random.h"
#include "edgerunner/error.h"

namespace edgerunner {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

const std::vector<float> kLogits = {1.0F, 3.0F, -2.0F, 2.5F, 0.0F, 2.5F, -7.0F, 1.5F};

TokenId sample(const SamplingOptions& options, std::vector<float> logits,
               const std::vector<TokenId>& history = {}, std::uint64_t index = 0) {
  Sampler sampler(options, static_cast<std::uint32_t>(logits.size()));
  return sampler.sample(logits, history, index);
}

// The distribution that the options define, computed in the plainest way.
std::vector<double> exact(const SamplingOptions& o, const std::vector<float>& logits) {
  const std::size_t n = logits.size();
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  const auto normalised = [&] {
    std::vector<double> p;
    for (const std::size_t i : order) p.push_back(std::exp(double{logits[i]} / o.temperature));
    const double total = std::accumulate(p.begin(), p.end(), 0.0);
    for (double& x : p) x /= total;
    return p;
  };
  if (o.top_k > 0 && static_cast<std::size_t>(o.top_k) < n) order.resize(o.top_k);
  std::vector<double> p = normalised();
  double sum = 0;
  std::size_t kept = 0;
  while (kept < p.size() && (kept == 0 || sum < o.top_p)) sum += p[kept++];
  if (o.top_p < 1) order.resize(kept);
  p = normalised();
  kept = 0;
  while (kept < p.size() && p[kept] >= double{o.min_p} * p[0]) ++kept;
  order.resize(kept);
  p = normalised();
  std::vector<double> result(n, 0.0);
  for (std::size_t i = 0; i < order.size(); ++i) result[order[i]] = p[i];
  return result;
}

// Draws often and compares the counts with the exact distribution by Pearson's chi-squared test.
void expect_distribution(const SamplingOptions& options, const std::vector<float>& logits) {
  const std::vector<double> expected = exact(options, logits);
  constexpr int kDraws = 40000;
  std::vector<int> counts(logits.size());
  Sampler sampler(options, static_cast<std::uint32_t>(logits.size()));
  for (int i = 0; i < kDraws; ++i) {
    std::vector<float> scratch = logits;
    ++counts[sampler.sample(scratch, {}, i)];
  }
  double chi_squared = 0;
  int cells = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (expected[i] == 0) {
      EXPECT_EQ(counts[i], 0) << "token " << i << " was excluded";
      continue;
    }
    const double wanted = expected[i] * kDraws;
    if (wanted < 5) continue;  // too rare for the test's approximation
    chi_squared += (counts[i] - wanted) * (counts[i] - wanted) / wanted;
    ++cells;
  }
  // Mean cells - 1, standard deviation sqrt(2 (cells - 1)); 5 deviations, and the draws are fixed.
  EXPECT_LT(chi_squared, cells + 5 * std::sqrt(2.0 * cells));
}

SamplingOptions warm(float temperature = 1.0F) {
  SamplingOptions options;
  options.temperature = temperature;
  options.seed = 12345;
  return options;
}

TEST(Sampler, GreedyTakesTheLargestAndOfEqualsTheLowestId) {
  EXPECT_EQ(sample({}, kLogits), 1);
  EXPECT_EQ(sample({}, {1.0F, 2.0F, 2.0F}), 1);
}

TEST(Sampler, ReportsLogitsThatAreNotFinite) {
  for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    for (const float temperature : {0.0F, 1.0F}) {
      std::vector<float> logits(100, 0.0F);
      logits[61] = bad;
      try {
        sample(warm(temperature), logits);
        FAIL() << bad;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::device);
      }
    }
  }
}

TEST(Sampler, DrawsFromTheExactDistribution) {
  SamplingOptions options = warm();
  expect_distribution(options, kLogits);
  options.temperature = 0.6F;
  expect_distribution(options, kLogits);
  options.temperature = 3.0F;
  expect_distribution(options, kLogits);
}

TEST(Sampler, KeepsTheTopK) {
  SamplingOptions options = warm();
  for (const int k : {1, 2, 3, 7, 8, 100}) {
    options.top_k = k;
    expect_distribution(options, kLogits);
  }
}

TEST(Sampler, KeepsTheTopP) {
  SamplingOptions options = warm();
  for (const float p : {0.0F, 0.2F, 0.5F, 0.75F, 0.9F, 0.999F}) {
    options.top_p = p;
    expect_distribution(options, kLogits);
  }
}

TEST(Sampler, KeepsTheMinP) {
  SamplingOptions options = warm();
  for (const float p : {0.05F, 0.3F, 0.7F, 1.0F}) {
    options.min_p = p;
    expect_distribution(options, kLogits);
  }
}

TEST(Sampler, AppliesTopKThenTopPThenMinP) {
  SamplingOptions options = warm(1.3F);
  options.top_k = 6;
  options.top_p = 0.93F;
  options.min_p = 0.2F;
  expect_distribution(options, kLogits);
  options.min_p = 0.05F;
  expect_distribution(options, kLogits);
}

TEST(Sampler, IsExactOverALargeVocabulary) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0.0F, 3.0F);
  std::vector<float> logits(20000);
  for (float& logit : logits) logit = normal(random);
  SamplingOptions options = warm(0.7F);
  options.top_p = 0.9F;
  const std::vector<double> expected = exact(options, logits);
  Sampler sampler(options, 20000);
  for (int i = 0; i < 500; ++i) {
    std::vector<float> scratch = logits;
    EXPECT_GT(expected[sampler.sample(scratch, {}, i)], 0);
  }
}

TEST(Sampler, AddsTheLogitBias) {
  SamplingOptions options;
  options.logit_bias = {{6, 11.0F}};
  EXPECT_EQ(sample(options, kLogits), 6);
  options.logit_bias = {{1, -kInfinity}, {3, -kInfinity}};
  EXPECT_EQ(sample(options, kLogits), 5);
  options.temperature = 1.0F;
  for (int i = 0; i < 300; ++i) {
    const TokenId token = sample(options, kLogits, {}, i);
    EXPECT_TRUE(token != 1 && token != 3);
  }
}

TEST(Sampler, RefusesToDrawWhereEverythingIsBanned) {
  SamplingOptions options;
  options.logit_bias = {{0, -kInfinity}, {1, -kInfinity}};
  EXPECT_THROW(sample(options, {1.0F, 2.0F}), Error);
}

TEST(Sampler, PenalisesRepetitionByTheSignOfTheLogit) {
  SamplingOptions options;
  options.repeat_penalty = 2.0F;
  EXPECT_EQ(sample(options, {3.0F, 2.0F, 1.0F}, {0}), 1);
  EXPECT_EQ(sample(options, {-1.0F, -1.5F}, {0}), 1) << "a negative logit is multiplied";
  EXPECT_EQ(sample(options, {3.0F, 2.0F}, {0, 0, 0}), 1) << "once, however often it occurred";
  EXPECT_EQ(sample(options, {3.0F, 1.4F}, {0, 0, 0}), 0);
}

TEST(Sampler, SubtractsFrequencyAndPresencePenalties) {
  SamplingOptions options;
  options.frequency_penalty = 0.5F;
  EXPECT_EQ(sample(options, {3.0F, 2.2F}, {0}), 0);
  EXPECT_EQ(sample(options, {3.0F, 2.2F}, {0, 0}), 1);
  options.frequency_penalty = 0;
  options.presence_penalty = 0.5F;
  EXPECT_EQ(sample(options, {3.0F, 2.2F}, {0, 0}), 0);
  options.presence_penalty = 1.0F;
  EXPECT_EQ(sample(options, {3.0F, 2.2F}, {0}), 1);
}

TEST(Sampler, LooksBackAsFarAsAsked) {
  SamplingOptions options;
  options.presence_penalty = 5.0F;
  options.penalty_last_n = 2;
  EXPECT_EQ(sample(options, {3.0F, 2.0F, 1.0F}, {0, 2, 2}), 0);
  EXPECT_EQ(sample(options, {3.0F, 2.0F, 1.0F}, {2, 0, 2}), 1);
  options.penalty_last_n = 0;
  EXPECT_EQ(sample(options, {3.0F, 2.0F, 1.0F}, {0}), 0);
  options.penalty_last_n = -1;
  std::vector<TokenId> history(1000, 2);
  history[0] = 0;
  EXPECT_EQ(sample(options, {3.0F, 2.0F, 1.0F}, history), 1);
}

TEST(Sampler, LeavesNothingBehindBetweenCalls) {
  SamplingOptions options;
  options.frequency_penalty = 0.5F;
  Sampler sampler(options, 2);
  const std::vector<TokenId> history = {0};
  for (int i = 0; i < 5; ++i) {
    std::vector<float> logits = {3.0F, 2.2F};
    EXPECT_EQ(sampler.sample(logits, history, i), 0);
  }
}

TEST(Sampler, DrawsTheSameForTheSameSeedAndIndex) {
  SamplingOptions options = warm(2.0F);
  std::vector<TokenId> first;
  std::vector<TokenId> second;
  std::vector<TokenId> other;
  for (int i = 0; i < 64; ++i) first.push_back(sample(options, kLogits, {}, i));
  for (int i = 0; i < 64; ++i) second.push_back(sample(options, kLogits, {}, i));
  options.seed = 12346;
  for (int i = 0; i < 64; ++i) other.push_back(sample(options, kLogits, {}, i));
  EXPECT_EQ(first, second);
  EXPECT_NE(first, other);
}

TEST(Sampler, NamesTheOptionThatIsOutOfRange) {
  const auto expect_named = [](const std::string& option,
                               const std::function<void(SamplingOptions&)>& spoil) {
    SamplingOptions options;
    spoil(options);
    try {
      check_sampling_options(options, 10);
      FAIL() << option;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), ::testing::HasSubstr(option));
    }
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  expect_named("temperature", [](auto& o) { o.temperature = -0.1F; });
  expect_named("temperature", [&](auto& o) { o.temperature = nan; });
  expect_named("temperature", [](auto& o) { o.temperature = kInfinity; });
  expect_named("top_k", [](auto& o) { o.top_k = -1; });
  expect_named("top_p", [](auto& o) { o.top_p = 1.1F; });
  expect_named("top_p", [&](auto& o) { o.top_p = nan; });
  expect_named("min_p", [](auto& o) { o.min_p = -0.5F; });
  expect_named("repeat_penalty", [](auto& o) { o.repeat_penalty = 0; });
  expect_named("frequency_penalty", [](auto& o) { o.frequency_penalty = kInfinity; });
  expect_named("presence_penalty", [&](auto& o) { o.presence_penalty = nan; });
  expect_named("penalty_last_n", [](auto& o) { o.penalty_last_n = -2; });
  expect_named("logit_bias", [](auto& o) { o.logit_bias = {{10, 1.0F}}; });
  expect_named("logit_bias", [](auto& o) { o.logit_bias = {{-1, 1.0F}}; });
  expect_named("logit_bias", [&](auto& o) { o.logit_bias = {{1, nan}}; });
  EXPECT_NO_THROW(check_sampling_options({}, 10));
}

// The published SplitMix64 outputs for the state 1234567 (Rosetta Code, "Pseudo-random
// numbers/Splitmix64").
TEST(Random, MixesAsSplitMix64) {
  std::uint64_t state = 1234567;
  const auto next = [&state] { return mix64(state += 0x9E3779B97F4A7C15U); };
  EXPECT_EQ(next(), 6457827717110365317U);
  EXPECT_EQ(next(), 3203168211198807973U);
  EXPECT_EQ(next(), 9817491932198370423U);
}

TEST(Random, IsUniformOverIndicesAndSeeds) {
  double by_index = 0;
  double by_seed = 0;
  for (std::uint64_t i = 0; i < 10000; ++i) {
    const double x = uniform_at(7, i);
    ASSERT_GE(x, 0);
    ASSERT_LT(x, 1);
    by_index += x;
    by_seed += uniform_at(i, 7);
  }
  EXPECT_NEAR(by_index / 10000, 0.5, 0.015);  // 5 standard deviations
  EXPECT_NEAR(by_seed / 10000, 0.5, 0.015);
}

TEST(Exponential, IsWithinItsBound) {
  double worst = 0;
  for (float x = 0; x > -87.0F; x -= 0.00037F) {
    const double wanted = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(exp_of_negative(x) - wanted) / wanted);
  }
  EXPECT_LT(worst, 3e-7);
  EXPECT_EQ(exp_of_negative(0), 1.0F);
  EXPECT_EQ(exp_of_negative(-100.0F), 0.0F);
  EXPECT_EQ(exp_of_negative(-kInfinity), 0.0F);
}

TEST(Sampler, ChoosesAmongAllowedTokensOnly) {
  std::vector<float> logits(200, 1.0F);
  logits[7] = 9.0F;
  const std::vector<std::uint64_t> allowed = {0, std::uint64_t{1} << 5 | std::uint64_t{1} << 6};
  for (const float temperature : {0.0F, 1.0F, 100.0F}) {
    SamplingOptions options;
    options.temperature = temperature;
    for (std::uint64_t index = 0; index < 20; ++index) {
      Sampler sampler(options, 200);
      std::vector<float> scratch = logits;
      const TokenId token = sampler.sample(scratch, {}, index, allowed);
      EXPECT_TRUE(token == 69 || token == 70) << token;
    }
  }
}

}  // namespace
}  // namespace edgerunner
