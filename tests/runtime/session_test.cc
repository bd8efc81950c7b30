#include "edgerunner/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "edgerunner/error.h"
#include "support/scripted_model.h"

namespace edgerunner {
namespace {

using test::ScriptedModel;
using test::ScriptedModelOptions;
using ::testing::ElementsAreArray;

TokenId pseudo_random(std::span<const TokenId>) { return kNoToken; }

std::vector<TokenId> sequence(std::size_t count) {
  std::vector<TokenId> tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = static_cast<TokenId>((i * i) % 251);
  return tokens;
}

std::vector<float> copy(std::span<const float> logits) { return {logits.begin(), logits.end()}; }

std::vector<float> uncached(std::span<const TokenId> tokens) {
  ScriptedModel script(pseudo_random);
  return copy(script.model.session().logits(tokens));
}

TEST(Session, ReturnsTheSameLogitsWithoutComputing) {
  ScriptedModel script(pseudo_random);
  Session session = script.model.session();
  const auto tokens = sequence(100);
  const auto first = copy(session.logits(tokens));
  EXPECT_EQ(session.computed_tokens(), 100U);
  EXPECT_EQ(session.reused_tokens(), 0U);
  EXPECT_THAT(copy(session.logits(tokens)), ElementsAreArray(first));
  EXPECT_EQ(session.computed_tokens(), 0U);
  EXPECT_EQ(session.reused_tokens(), 100U);
  EXPECT_EQ(script.executor->passes().size(), 1U);
}

TEST(Session, ComputesOneTokenOfASequenceThatGrewByOne) {
  ScriptedModel script(pseudo_random);
  Session session = script.model.session();
  for (std::size_t n = 1; n <= 200; ++n) {
    ASSERT_THAT(copy(session.logits(sequence(n))), ElementsAreArray(uncached(sequence(n)))) << n;
    ASSERT_EQ(session.computed_tokens(), 1U);
  }
  EXPECT_EQ(script.executor->copies, 0);
}

TEST(Session, ComputesTheSuffixOfASequenceThatSharesAPrefix) {
  ScriptedModel script(pseudo_random);
  Session session = script.model.session();
  session.logits(sequence(150));
  auto tokens = sequence(150);
  for (std::size_t i = 97; i < tokens.size(); ++i) tokens[i] = 7;
  EXPECT_THAT(copy(session.logits(tokens)), ElementsAreArray(uncached(tokens)));
  EXPECT_EQ(session.reused_tokens(), 97U);
  EXPECT_EQ(session.computed_tokens(), 53U);
}

TEST(Session, ComputesTheLastTokenOfAShorterPrefix) {
  ScriptedModel script(pseudo_random);
  Session session = script.model.session();
  session.logits(sequence(200));
  for (const std::size_t n : {150U, 128U, 64U, 1U}) {
    EXPECT_THAT(copy(session.logits(sequence(n))), ElementsAreArray(uncached(sequence(n))));
    EXPECT_EQ(session.computed_tokens(), 1U);
    EXPECT_EQ(session.reused_tokens(), n - 1);
  }
}

TEST(Session, StartsAgainWhereNothingIsShared) {
  ScriptedModel script(pseudo_random);
  Session session = script.model.session();
  session.logits(sequence(100));
  const std::vector<TokenId> other(100, 5);
  EXPECT_THAT(copy(session.logits(other)), ElementsAreArray(uncached(other)));
  EXPECT_EQ(session.computed_tokens(), 100U);
}

TEST(Session, SharesTheCacheWithOthersOfItsModel) {
  ScriptedModel script(pseudo_random);
  Session first = script.model.session();
  Session second = script.model.session();
  first.logits(sequence(100));
  second.logits(sequence(100));
  EXPECT_EQ(second.reused_tokens(), 99U);
  first.logits(sequence(101));
  EXPECT_EQ(first.reused_tokens(), 100U);
}

TEST(Session, GivesTheGreedyTokenAndWhetherLogitsAreFinite) {
  ScriptedModel script([](std::span<const TokenId> seen) { return seen.back() + 1; });
  Session session = script.model.session();
  const std::vector<TokenId> tokens = {4, 9};
  const Session::Greedy greedy = session.greedy_token(tokens);
  EXPECT_EQ(greedy.token, 10);
  EXPECT_TRUE(greedy.finite);
}

TEST(Session, DrawsWhatAGenerationDraws) {
  ScriptedModel script(pseudo_random);
  GenerateOptions options;
  options.sampling.temperature = 0.9F;
  options.sampling.seed = 77;
  options.sampling.repeat_penalty = 1.2F;
  options.max_tokens = 40;
  options.ignore_eos = true;
  const auto prompt = sequence(30);
  const auto generated =
      script.model.generate(std::span<const TokenId>(prompt), options).summary().tokens;
  Session session = script.model.session();
  auto tokens = prompt;
  for (const TokenId token : generated) {
    ASSERT_EQ(session.next_token(tokens, options.sampling), token);
    tokens.push_back(token);
  }
}

TEST(Session, LeavesItsLogitsAsTheyAreWhenItDraws) {
  ScriptedModel script(pseudo_random);
  Session session = script.model.session();
  const auto tokens = sequence(10);
  const auto logits = copy(session.logits(tokens));
  SamplingOptions sampling;
  sampling.repeat_penalty = 1.5F;
  sampling.logit_bias = {{3, 9.0F}};
  EXPECT_EQ(session.next_token(tokens, sampling), 3);
  EXPECT_THAT(copy(session.logits(tokens)), ElementsAreArray(logits));
}

TEST(Session, RefusesWhatItCanNotCompute) {
  ScriptedModelOptions options;
  options.context = 50;
  ScriptedModel script(pseudo_random, options);
  Session session = script.model.session();
  const auto code = [&session](const std::vector<TokenId>& tokens) {
    try {
      session.logits(tokens);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::io;
  };
  EXPECT_EQ(code({}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({-1}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({1, 257}), ErrorCode::invalid_argument);
  EXPECT_EQ(code(sequence(51)), ErrorCode::context_full);
  EXPECT_NO_THROW(session.logits(sequence(50)));
}

TEST(Session, RunsBesideOthersOnOtherThreads) {
  ScriptedModel script(pseudo_random);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&script, t] {
      Session session = script.model.session();
      for (std::size_t n = 60; n < 140; ++n) {
        auto tokens = sequence(n);
        if (n > 70) tokens[70] = t;
        EXPECT_EQ(copy(session.logits(tokens)), uncached(tokens));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace edgerunner
