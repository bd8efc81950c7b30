#include "runtime/model_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <vector>

#include "support/scripted_executor.h"

namespace edgerunner::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint32_t kVocab = 1000;

// Counts on.
TokenId next_number(std::span<const TokenId> seen) { return seen.back() + 1; }

class ModelDrafterTest : public ::testing::Test {
 protected:
  void make(const ExecutorOptions& options, std::uint32_t other_vocab = kVocab,
            double confidence = 0, ScriptedExecutor::Script script = next_number) {
    auto model = std::make_unique<DraftModel>();
    model->decoder.spec.vocab_size = kVocab;
    auto executor = std::make_unique<ScriptedExecutor>(kVocab, std::move(script), options);
    executor_ = executor.get();
    model->executor = std::move(executor);
    drafter_.emplace(std::move(model), other_vocab, confidence);
  }

  std::vector<TokenId> guess(const std::vector<TokenId>& tokens, std::uint32_t most,
                             std::uint64_t sequence = 1) {
    std::vector<TokenId> guesses;
    const DraftRequest request{.sequence = sequence,
                               .tokens = tokens,
                               .sampling = &sampling_,
                               .index = tokens.size(),
                               .most = most,
                               .guesses = &guesses};
    drafter_->draft({&request, 1});
    return guesses;
  }

  // (start, rows) of the only sequence of pass i.
  std::pair<std::uint32_t, std::uint32_t> pass(std::size_t i) const {
    const ScriptedExecutor::Slice slice = executor_->passes().at(i).at(0);
    return {slice.start, slice.rows};
  }

  SamplingOptions sampling_;
  ScriptedExecutor* executor_ = nullptr;
  std::optional<ModelDrafter> drafter_;
};

TEST_F(ModelDrafterTest, GuessesWhatTheModelWrites) {
  make(scripted_options());
  EXPECT_THAT(guess({5, 10}, 3), ElementsAre(11, 12, 13));
  EXPECT_EQ(executor_->passes().size(), 3U);
}

TEST_F(ModelDrafterTest, KeepsWhatItComputedOfRightGuesses) {
  make(scripted_options());
  guess({5, 10}, 3);  // computes 5 10 | 11 | 12
  EXPECT_THAT(guess({5, 10, 11, 12, 13, 14}, 1), ElementsAre(15));
  EXPECT_EQ(pass(3), std::pair(4U, 2U));  // 13 14
  EXPECT_THAT(guess({5, 10, 11, 12, 13, 14, 70}, 2), ElementsAre(71, 72));
  EXPECT_EQ(pass(4), std::pair(6U, 1U));  // 70, over the guess
  EXPECT_THAT(guess({5, 10, 11, 12, 13, 14, 70, 80}, 1), ElementsAre(81));
  EXPECT_EQ(pass(6), std::pair(7U, 1U));  // 80, over 71
}

TEST_F(ModelDrafterTest, ReadsALongPromptPieceByPiece) {
  ExecutorOptions options = scripted_options();
  options.max_rows = 100;
  make(options);
  std::vector<TokenId> prompt(250);
  std::iota(prompt.begin(), prompt.end(), 0);
  EXPECT_THAT(guess(prompt, 2), IsEmpty());
  EXPECT_THAT(guess(prompt, 2), IsEmpty());
  EXPECT_THAT(guess(prompt, 2), ElementsAre(250, 251));
}

TEST_F(ModelDrafterTest, StopsAtItsContextsEnd) {
  ExecutorOptions options = scripted_options();
  options.max_context = 64;
  make(options);
  std::vector<TokenId> tokens(62);
  std::iota(tokens.begin(), tokens.end(), 0);
  EXPECT_THAT(guess(tokens, 9), ElementsAre(62, 63, 64));
  tokens.push_back(62);
  tokens.push_back(63);
  EXPECT_THAT(guess(tokens, 9), ElementsAre(64));
  tokens.push_back(64);
  EXPECT_THAT(guess(tokens, 9), IsEmpty());
}

TEST_F(ModelDrafterTest, GuessesForSeveralSequencesInTheSamePasses) {
  make(scripted_options());
  const std::vector<TokenId> first = {1};
  const std::vector<TokenId> second = {100, 200};
  std::vector<TokenId> guesses[2];
  const DraftRequest requests[] = {{1, first, &sampling_, 1, 2, Guessing::as_loaded, &guesses[0]},
                                   {2, second, &sampling_, 2, 3, Guessing::as_loaded, &guesses[1]}};
  drafter_->draft(requests);
  EXPECT_THAT(guesses[0], ElementsAre(2, 3));
  EXPECT_THAT(guesses[1], ElementsAre(201, 202, 203));
  EXPECT_EQ(executor_->passes().size(), 3U);
  EXPECT_EQ(executor_->passes()[1].size(), 2U);
  EXPECT_EQ(executor_->passes()[2].size(), 1U);
}

TEST_F(ModelDrafterTest, GuessesNoTokenThatTheOtherModelHasNot) {
  make(scripted_options(), 50);
  for (const TokenId token : guess({40}, 16)) EXPECT_LT(token, 50);
}

// After 12 no token stands out of a thousand.
TEST_F(ModelDrafterTest, StopsWhereItDoubtsItsGuesses) {
  const auto unsure = [](std::span<const TokenId> seen) {
    return seen.back() == 12 ? kNoToken : next_number(seen);
  };
  make(scripted_options(), kVocab, 0.5, unsure);
  EXPECT_THAT(guess({5, 10}, 6), ElementsAre(11, 12));
  EXPECT_EQ(executor_->passes().size(), 3U);
  EXPECT_THAT(guess({5, 10, 11, 12}, 6), IsEmpty());
  EXPECT_THAT(guess({5, 10, 11, 12, 40}, 2), ElementsAre(41, 42));
  make(scripted_options(), kVocab, 0, unsure);
  EXPECT_EQ(guess({5, 10}, 6).size(), 6U);
}

TEST_F(ModelDrafterTest, DoesWithoutGuessesWherePagesAreMissing) {
  ExecutorOptions options = scripted_options();
  options.pages = 1;
  make(options);
  EXPECT_THAT(guess({1}, 1, 1), ElementsAre(2));
  EXPECT_THAT(guess({1}, 1, 2), IsEmpty());
  drafter_->forget(1);
  EXPECT_THAT(guess({1}, 1, 2), ElementsAre(2));
}

}  // namespace
}  // namespace edgerunner::test
