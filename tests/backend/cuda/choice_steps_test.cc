#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "backend/cuda/choice_settings.h"
#include "backend/cuda/choice_steps.h"
#include "runtime/sampler.h"

// The steps that the device chooses tokens by, taken by a team of one on the host: they must choose
// what the runtime's Sampler chooses.

namespace edgerunner::test {
namespace {

struct Border {
  std::uint32_t bin = 0;
  bool too_many = false;
  std::uint64_t weight_before = 0;
};

// One thread. What threads of the device tell each other, it tells itself.
class HostTeam {
 public:
  std::uint32_t rank() const { return 0; }
  std::uint32_t size() const { return 1; }
  std::uint32_t block_rank() const { return 0; }
  std::uint32_t block_size() const { return 1; }
  void sync() const {}

  template <typename T>
  T add(T* to, T x) const {
    const T old = *to;
    *to += x;
    return old;
  }
  template <typename T>
  void max(T* to, T x) const {
    *to = std::max(*to, x);
  }
  std::uint32_t take(std::uint32_t* from) const { return std::exchange(*from, 0U); }
  std::uint64_t sum(std::uint64_t x) const { return x; }
  std::uint64_t sum_before(std::uint64_t /*x*/) const { return 0; }

  void tell(const Border& border) const { border_ = border; }
  const Border& told() const { return border_; }
  void choose(TokenId token) const { chosen_ = token; }
  TokenId chosen() const { return chosen_; }

 private:
  mutable Border border_;
  mutable TokenId chosen_ = kNoToken;
};

// The memory of one row, kept from call to call as the device keeps it.
class HostChooser {
 public:
  explicit HostChooser(std::uint32_t vocab)
      : vocab_(vocab),
        counts_(vocab),
        bin_weights_(cuda::kBins),
        bin_counts_(cuda::kBins),
        list_(cuda::kListRoom) {}

  TokenId choose(std::vector<float> logits, const SamplingOptions& options,
                 std::span<const TokenId> history, std::uint64_t index) {
    const cuda::RowChoice choice = cuda::row_choice({&options, history, index}, 8192);
    std::vector<TokenId> tokens(choice.history.begin(), choice.history.end());
    tokens.resize(tokens.size() + 1);
    std::vector<cuda::Bias> biases;
    for (const auto& [token, value] : options.logit_bias) biases.push_back({token, value});
    const cuda::ChoiceRow row{.settings = &choice.settings,
                              .state = &state_,
                              .logits = logits.data(),
                              .counts = counts_.data(),
                              .history = tokens.data(),
                              .biases = biases.data(),
                              .bin_weights = bin_weights_.data(),
                              .bin_counts = bin_counts_.data(),
                              .list = list_.data(),
                              .vocab = vocab_,
                              .step = 0};
    cuda::prepare(HostTeam(), row);
    cuda::survey(HostTeam(), row);
    cuda::weigh(HostTeam(), row);
    cuda::gather(HostTeam(), row);
    return cuda::finish(HostTeam(), row);
  }

 private:
  std::uint32_t vocab_;
  cuda::ChoiceState state_;
  std::vector<std::uint32_t> counts_;
  std::vector<std::uint64_t> bin_weights_;
  std::vector<std::uint32_t> bin_counts_;
  std::vector<cuda::Listed> list_;
};

std::vector<float> random_logits(std::uint32_t vocab, float spread, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> logits(vocab);
  for (float& x : logits) x = normal(generator);
  return logits;
}

TokenId by_sampler(std::vector<float> logits, const SamplingOptions& options,
                   std::span<const TokenId> history, std::uint64_t index) {
  const auto vocab = static_cast<std::uint32_t>(logits.size());
  return Sampler(options, vocab).sample(logits, history, index);
}

// Every setting alone and with others.
std::vector<SamplingOptions> settings() {
  std::vector<SamplingOptions> all;
  for (const float temperature : {0.0F, 0.3F, 1.0F, 1.7F}) {
    for (const std::int32_t top_k : {0, 1, 7, 40, 5000}) {
      for (const float top_p : {0.0F, 0.5F, 0.95F, 1.0F}) {
        for (const float min_p : {0.0F, 0.05F, 1.0F}) {
          SamplingOptions options;
          options.temperature = temperature;
          options.top_k = top_k;
          options.top_p = top_p;
          options.min_p = min_p;
          all.push_back(options);
        }
      }
    }
  }
  return all;
}

TEST(ChoiceSteps, ChooseWhatTheSamplerChooses) {
  constexpr std::uint32_t kVocab = 3001;
  HostChooser chooser(kVocab);
  std::uint64_t index = 0;
  for (SamplingOptions options : settings()) {
    for (const float spread : {0.5F, 3.0F, 9.0F}) {
      options.seed = index / 3;
      const auto logits = random_logits(kVocab, spread, static_cast<std::uint32_t>(index));
      ASSERT_EQ(chooser.choose(logits, options, {}, index), by_sampler(logits, options, {}, index))
          << "temperature " << options.temperature << " top_k " << options.top_k << " top_p "
          << options.top_p << " min_p " << options.min_p << " spread " << spread;
      ++index;
    }
  }
}

TEST(ChoiceSteps, ApplyBiasesAndPenaltiesAsTheSamplerDoes) {
  constexpr std::uint32_t kVocab = 300;
  HostChooser chooser(kVocab);
  std::mt19937 generator(5);
  for (std::uint32_t round = 0; round < 300; ++round) {
    SamplingOptions options;
    options.temperature = round % 3 == 0 ? 0.0F : 0.8F;
    options.top_k = round % 4 == 0 ? 20 : 0;
    options.seed = round;
    options.repeat_penalty = round % 2 == 0 ? 1.3F : 1.0F;
    options.frequency_penalty = round % 5 == 0 ? 0.7F : 0.0F;
    options.presence_penalty = round % 7 == 0 ? -0.4F : 0.0F;
    options.penalty_last_n = static_cast<std::int32_t>(round % 6) * 20 - 1;
    std::vector<TokenId> history(round % 90 + 1);
    for (TokenId& token : history) token = static_cast<TokenId>(generator() % 40);
    const auto logits = random_logits(kVocab, 2, round);
    const auto likeliest =
        static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    options.logit_bias = {{likeliest, -std::numeric_limits<float>::infinity()},
                          {static_cast<TokenId>(round % kVocab), 4.0F},
                          {static_cast<TokenId>(round % 7), -1.5F}};
    ASSERT_EQ(chooser.choose(logits, options, history, history.size()),
              by_sampler(logits, options, history, history.size()))
        << "round " << round;
  }
}

TEST(ChoiceSteps, TakeTheLowestIdOfEquals) {
  HostChooser chooser(1000);
  std::vector<float> logits(1000, -2.0F);
  logits[700] = logits[300] = 0.0F;
  logits[200] = -0.0F;
  EXPECT_EQ(chooser.choose(logits, {}, {}, 0), 200);
  for (std::uint64_t index = 0; index < 50; ++index) {
    SamplingOptions options;
    options.temperature = 1;
    options.top_k = 3;
    ASSERT_EQ(chooser.choose(logits, options, {}, index), by_sampler(logits, options, {}, index));
  }
}

TEST(ChoiceSteps, LeaveToTheCallerWhatIsNotFinite) {
  HostChooser chooser(500);
  const auto good = random_logits(500, 1, 1);
  for (const float bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    for (const float temperature : {0.0F, 1.0F}) {
      SamplingOptions options;
      options.temperature = temperature;
      auto logits = good;
      logits[137] = bad;
      EXPECT_EQ(chooser.choose(logits, options, {}, 0), kNoToken);
      options.logit_bias = {{3, -std::numeric_limits<float>::infinity()}};
      EXPECT_EQ(chooser.choose(logits, options, {}, 0), kNoToken);
      EXPECT_EQ(chooser.choose(good, options, {}, 0), by_sampler(good, options, {}, 0));
    }
  }
}

TEST(ChoiceSteps, LeaveToTheCallerANucleusThatIsTooLarge) {
  constexpr std::uint32_t kVocab = 20000;
  HostChooser chooser(kVocab);
  SamplingOptions options;
  options.temperature = 1;
  options.top_p = 0.9F;
  EXPECT_EQ(chooser.choose(random_logits(kVocab, 0.1F, 1), options, {}, 0), kNoToken);
  const auto logits = random_logits(kVocab, 4, 1);
  EXPECT_EQ(chooser.choose(logits, options, {}, 0), by_sampler(logits, options, {}, 0));
}

// Pearson's statistic of 20,000 draws over the exact probabilities.
TEST(ChoiceSteps, DrawTokensAsOftenAsTheirProbabilitiesSay) {
  constexpr std::uint32_t kVocab = 50;
  constexpr std::uint32_t kDraws = 20000;
  HostChooser chooser(kVocab);
  const auto logits = random_logits(kVocab, 1.0F, 3);
  double total = 0;
  for (const float x : logits) total += std::exp(static_cast<double>(x) / 0.9);
  SamplingOptions options;
  options.temperature = 0.9F;
  options.seed = 11;
  std::vector<std::uint32_t> counts(kVocab);
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    ++counts[static_cast<std::size_t>(chooser.choose(logits, options, {}, i))];
  }
  double statistic = 0;
  for (std::uint32_t i = 0; i < kVocab; ++i) {
    const double expected = kDraws * std::exp(static_cast<double>(logits[i]) / 0.9) / total;
    statistic += std::pow(counts[i] - expected, 2) / expected;
  }
  EXPECT_LT(statistic, 85.4);  // passed with probability 0.999 at 49 degrees of freedom
}

}  // namespace
}  // namespace edgerunner::test
