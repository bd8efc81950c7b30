#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

#include "expect_stop.h"
#include "runtime/burst_length.h"
#include "support/scripted_model.h"

// A backend that chooses tokens itself, several at once: what is generated is what would be
// generated from logits.

namespace edgerunner::test {
namespace {

using testing::Each;
using testing::Gt;

// Tokens that depend on all that was seen, so that a wrong cache shows.
TokenId mixed(std::span<const TokenId> seen) {
  std::uint64_t hash = 17;
  for (const TokenId token : seen)
    hash = hash * 6364136223846793005U + static_cast<unsigned>(token);
  return static_cast<TokenId>(hash >> 33) % 90 + 33;
}

std::string text_of(const ScriptedModelOptions& model_options, const GenerateOptions& options,
                    std::function<bool(std::uint64_t)> leaves_to_caller = {}) {
  ScriptedModel scripted(mixed, model_options);
  scripted.executor->leaves_to_caller = std::move(leaves_to_caller);
  std::string text;
  Generation generation = scripted.model.generate("begin", options);
  for (const std::string& piece : generation) text += piece;
  EXPECT_EQ(scripted.executor->bursts.empty(), !model_options.chooses_tokens);
  return text;
}

GenerateOptions random_options(std::uint32_t max_tokens) {
  GenerateOptions options;
  options.max_tokens = max_tokens;
  options.sampling.temperature = 8;  // the script's token stands out by 20
  options.sampling.top_p = 0.95F;
  options.sampling.repeat_penalty = 1.2F;
  options.sampling.seed = 5;
  return options;
}

TEST(Burst, GivesTheTextThatLogitsGive) {
  const GenerateOptions options = random_options(300);
  const std::string expected = text_of({}, options);
  EXPECT_EQ(text_of({.chooses_tokens = true}, options), expected);
  // Pages that run out for a burst, but not for a token.
  EXPECT_EQ(text_of({.context = 320, .pages = 5, .chooses_tokens = true}, options), expected);
}

TEST(Burst, LeavesToTheSamplerWhatTheBackendCannotChoose) {
  const GenerateOptions options = random_options(100);
  const auto every_third = [](std::uint64_t index) { return index % 3 == 0; };
  EXPECT_EQ(text_of({.chooses_tokens = true}, options, every_third), text_of({}, options));
}

TEST(Burst, AsksForLogitsWhereTheBackendCannotFollowTheOptions) {
  GenerateOptions options = random_options(20);
  options.sampling.logit_bias = {{40, 3.0F}, {41, -2.0F}};
  ScriptedModel scripted(mixed, {.chooses_tokens = true});
  EXPECT_EQ(scripted.model.generate("begin", options).summary().generated_tokens, 20U);
  EXPECT_TRUE(scripted.executor->bursts.empty());
}

// In a time that no pass of a script takes, so that the length is not the machine's.
TEST(Burst, GrowsToSeveralTokens) {
  ScriptedModel scripted(mixed, {.chooses_tokens = true, .longest_burst = std::chrono::hours(1)});
  GenerateOptions options;
  options.max_tokens = 64;
  scripted.model.generate("begin", options).summary();
  const std::vector<std::uint32_t>& bursts = scripted.executor->bursts;
  ASSERT_GT(bursts.size(), 3U);
  EXPECT_EQ(bursts[0], 1U);  // the prompt
  EXPECT_THAT(std::vector(bursts.begin() + 2, bursts.end() - 1), Each(Gt(1U)));
}

TEST(Burst, EndsAtAStopStringInItsMiddle) {
  for (std::size_t length = 1; length < 20; ++length) {
    const std::string said = std::string(length, 'a') + "<end>after";
    ScriptedModel scripted(say("begin", said), {.chooses_tokens = true});
    ScriptedModel fresh(say("begin", said));
    expect_stop(scripted, fresh, length);
  }
}

TEST(Burst, EndsAtTheContextsEnd) {
  ScriptedModel scripted(mixed, {.context = 64, .pages = 4, .chooses_tokens = true});
  GenerateOptions options;
  options.max_tokens = 1000;
  const Summary summary = scripted.model.generate("begin", options).summary();
  EXPECT_EQ(summary.finish_reason, FinishReason::context_full);
  EXPECT_EQ(summary.generated_tokens, 64U - 5 + 1);
}

TEST(Burst, GoesOnInACircularContext) {
  GenerateOptions options;
  options.max_tokens = 400;
  options.circular_context = true;
  options.keep_tokens = 3;
  ScriptedModelOptions model_options{.context = 100, .pages = 8};
  const std::string expected = text_of(model_options, options);
  model_options.chooses_tokens = true;
  EXPECT_EQ(text_of(model_options, options), expected);
}

TEST(Burst, ServesSeveralGenerationsAtOnce) {
  std::vector<std::string> expected;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    GenerateOptions options = random_options(50 + 10 * static_cast<std::uint32_t>(seed));
    options.sampling.seed = seed;
    expected.push_back(text_of({}, options));
  }
  ScriptedModel scripted(mixed, {.chooses_tokens = true});
  std::vector<Generation> generations;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    GenerateOptions options = random_options(50 + 10 * static_cast<std::uint32_t>(seed));
    options.sampling.seed = seed;
    generations.push_back(scripted.model.generate("begin", options));
  }
  for (std::size_t i = 0; i < generations.size(); ++i) {
    std::string text;
    for (const std::string& piece : generations[i]) text += piece;
    EXPECT_EQ(text, expected[i]) << "seed " << i;
  }
}

TEST(Burst, IsNoLongerThanAReaderWouldNotice) {
  BurstLength length;
  EXPECT_EQ(length.next(32), 1U);
  length.took(1, BurstLength::Duration(0.001));
  EXPECT_EQ(length.next(32), 20U);
  EXPECT_EQ(length.next(8), 8U);
  EXPECT_EQ(length.next(0), 1U);
  length.took(10, BurstLength::Duration(1));
  EXPECT_EQ(length.next(32), 1U);
  length.took(4, BurstLength::Duration(0));
  EXPECT_EQ(length.next(32), 32U);
}

}  // namespace
}  // namespace edgerunner::test
