#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "arch/shape.h"
#include "backend/cuda/cuda_executor.h"
#include "backend/token_chooser.h"
#include "edgerunner/error.h"
#include "runtime/sampler.h"

// Tokens chosen on the device against the runtime's Sampler on the same logits.

namespace edgerunner::test {
namespace {

constexpr std::uint32_t kRows = 4;
constexpr std::uint32_t kSteps = 24;

class CudaSampling : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_available()) GTEST_SKIP() << "no GPU";
    decoder_ = shape_decoder("smollm2-135m", ElementType::q8_0);
    executor_ = cuda::make_executor(decoder_,
                                    {.precision = Precision::fast,
                                     .kv = KvPrecision::f16,
                                     .max_rows = 64,
                                     .max_logit_rows = kRows,
                                     .pages = 16,
                                     .max_context = 256},
                                    cuda::WeightSource::random);
    vocab_ = decoder_.spec.vocab_size;
    std::iota(pages_.begin(), pages_.end(), PageId{0});
  }

  // `rows` sequences of one token each, with pages of their own.
  struct Rows {
    std::vector<TokenId> tokens;
    std::vector<SequenceSlice> slices;
    std::vector<std::uint32_t> wanted;
    Batch batch() const { return {tokens, slices, wanted}; }
  };
  Rows make_rows(std::uint32_t rows) const {
    Rows made;
    for (std::uint32_t i = 0; i < rows; ++i) {
      made.tokens.push_back(static_cast<TokenId>(100 + 31 * i));
      made.slices.push_back({1, 0, std::span(pages_).subspan(4 * i, 4)});
      made.wanted.push_back(i);
    }
    return made;
  }

  // What forward() and a Sampler give, step by step: [steps][rows].
  std::vector<TokenId> by_sampler(Rows rows, const std::vector<SamplingOptions>& options) {
    const std::size_t count = rows.tokens.size();
    std::vector<std::vector<TokenId>> histories;
    for (const TokenId token : rows.tokens) histories.push_back({token});
    std::vector<float> logits(count * vocab_);
    std::vector<TokenId> chosen;
    for (std::uint32_t step = 0; step < kSteps; ++step) {
      executor_->forward(rows.batch(), logits);
      for (std::size_t i = 0; i < count; ++i) {
        const TokenId token = Sampler(options[i], vocab_)
                                  .sample(std::span(logits).subspan(i * vocab_, vocab_),
                                          histories[i], histories[i].size());
        chosen.push_back(token);
        histories[i].push_back(token);
        rows.tokens[i] = token;
        ++rows.slices[i].start;
      }
    }
    return chosen;
  }

  std::vector<TokenId> by_device(const Rows& rows, const std::vector<SamplingOptions>& options) {
    std::vector<TokenChoice> choices;
    for (std::size_t i = 0; i < options.size(); ++i) {
      choices.push_back({&options[i], std::span(rows.tokens).subspan(i, 1), 1});
    }
    std::vector<TokenId> chosen(kSteps * options.size());
    executor_->chooser()->choose(rows.batch(), choices, kSteps, chosen);
    return chosen;
  }

  static std::vector<SamplingOptions> kinds() {
    std::vector<SamplingOptions> all(8);
    for (std::size_t i = 1; i < all.size(); ++i) {
      all[i].temperature = 0.8F;
      all[i].seed = i;
    }
    all[2].top_k = 40;
    all[3].top_k = 40;
    all[3].top_p = 0.9F;
    all[4].top_p = 0.6F;
    all[4].temperature = 0.2F;
    all[5].min_p = 0.05F;
    all[6].repeat_penalty = 1.3F;
    all[6].frequency_penalty = 0.5F;
    all[6].penalty_last_n = 8;
    all[6].top_k = 5;
    all[7].top_k = 1000;
    all[7].presence_penalty = 2.0F;
    all[7].penalty_last_n = -1;
    all[7].logit_bias = {{5, 30.0F}, {7, -INFINITY}};
    return all;
  }

  Decoder decoder_;
  std::unique_ptr<Executor> executor_;
  std::uint32_t vocab_ = 0;
  std::vector<PageId> pages_ = std::vector<PageId>(16);
};

TEST_F(CudaSampling, ChoosesWhatTheSamplerChoosesForOneRow) {
  for (const SamplingOptions& options : kinds()) {
    EXPECT_EQ(by_device(make_rows(1), {options}), by_sampler(make_rows(1), {options}))
        << "seed " << options.seed;
  }
}

TEST_F(CudaSampling, ChoosesWhatTheSamplerChoosesForSeveralRows) {
  const std::vector<SamplingOptions> all = kinds();
  for (std::size_t first = 0; first + kRows <= all.size(); first += kRows) {
    const std::vector options(all.begin() + static_cast<std::ptrdiff_t>(first),
                              all.begin() + static_cast<std::ptrdiff_t>(first + kRows));
    EXPECT_EQ(by_device(make_rows(kRows), options), by_sampler(make_rows(kRows), options));
  }
}

// Pearson's statistic over the eight likeliest tokens and the rest of the forty.
TEST_F(CudaSampling, DrawsTokensAsOftenAsTheirProbabilitiesSay) {
  Rows rows = make_rows(1);
  std::vector<float> logits(vocab_);
  executor_->forward(rows.batch(), logits);
  std::vector<std::uint32_t> order(vocab_);
  std::iota(order.begin(), order.end(), 0U);
  std::partial_sort(order.begin(), order.begin() + 40, order.end(),
                    [&](std::uint32_t a, std::uint32_t b) { return logits[a] > logits[b]; });
  SamplingOptions options;
  options.temperature = 1;
  options.top_k = 40;
  options.seed = 9;
  std::vector<double> share(40);
  double total = 0;
  for (std::size_t i = 0; i < share.size(); ++i) {
    share[i] = std::exp(static_cast<double>(logits[order[i]]) - logits[order[0]]);
    total += share[i];
  }
  constexpr std::uint32_t kDraws = 4000;
  std::vector<std::uint32_t> counts(9);
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    TokenId token = kNoToken;
    const TokenChoice choice{&options, rows.tokens, i};
    executor_->chooser()->choose(rows.batch(), {&choice, 1}, 1, {&token, 1});
    std::size_t place = 0;
    while (place < 8 && order[place] != static_cast<std::uint32_t>(token)) ++place;
    ++counts[place];
  }
  double statistic = 0;
  for (std::size_t i = 0; i < 9; ++i) {
    const double weight = i < 8 ? share[i] : std::accumulate(share.begin() + 8, share.end(), 0.0);
    const double expected = kDraws * weight / total;
    statistic += std::pow(counts[i] - expected, 2) / expected;
  }
  EXPECT_LT(statistic, 26.1);  // passed with probability 0.999 at 8 degrees of freedom
}

TEST_F(CudaSampling, RefusesStepsThatThePagesHaveNoRoomFor) {
  const Rows rows = make_rows(1);
  const SamplingOptions options;
  const TokenChoice choice{&options, rows.tokens, 1};
  std::vector<TokenId> tokens(65);
  EXPECT_THROW(executor_->chooser()->choose(rows.batch(), {&choice, 1}, 65, tokens), Error);
  Rows late = rows;
  late.slices[0].start = 240;
  EXPECT_THROW(
      executor_->chooser()->choose(late.batch(), {&choice, 1}, 20, std::span(tokens).first(20)),
      Error);
}

}  // namespace
}  // namespace edgerunner::test
