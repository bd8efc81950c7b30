#include "runtime/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <semaphore>
#include <string>
#include <thread>

#include "edgerunner/error.h"
#include "support/scripted_model.h"

namespace edgerunner {
namespace {

using test::ScriptedExecutor;
using test::ScriptedModel;
using test::ScriptedModelOptions;
using test::ScriptedTokenizer;

TokenId pseudo_random(std::span<const TokenId>) { return kNoToken; }

GenerateOptions tokens(std::uint32_t count) {
  GenerateOptions options;
  options.max_tokens = count;
  options.ignore_eos = true;
  return options;
}

// Prompts of many lengths, some with a shared beginning.
std::string prompt(int i) {
  return std::string(i % 3 == 0 ? 90 : 3, 's') + std::string(1 + (i * 37) % 180, 'a' + i % 26);
}

GenerateOptions sampled(int i) {
  GenerateOptions options = tokens(20 + (i * 13) % 60);
  options.sampling.temperature = i % 2 == 0 ? 0.0F : 0.8F;
  options.sampling.seed = i;
  return options;
}

std::vector<TokenId> solo(int i) {
  ScriptedModel script(pseudo_random);
  return script.model.generate(prompt(i), sampled(i)).summary().tokens;
}

// Many generations at once, from one thread and from several, against each alone on a model of its
// own.
void expect_as_solo(const ScriptedModelOptions& options) {
  constexpr int kCount = 24;
  ScriptedModel script(pseudo_random, options);
  std::vector<Generation> generations;
  for (int i = 0; i < kCount; ++i) {
    generations.push_back(script.model.generate(prompt(i), sampled(i)));
  }
  for (int i = 0; i < kCount; ++i) EXPECT_EQ(generations[i].summary().tokens, solo(i)) << i;

  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&script, t] {
      for (int i = t; i < kCount; i += 4) {
        const auto result = script.model.generate(prompt(i), sampled(i)).summary().tokens;
        EXPECT_EQ(result, solo(i)) << i;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Scheduler, GivesEachOfManyWhatItGetsAlone) { expect_as_solo({}); }

TEST(Scheduler, GivesEachTheSameInSmallChunks) {
  ScriptedModelOptions options;
  options.prefill_chunk = 7;
  expect_as_solo(options);
  options.prefill_chunk = 1;
  expect_as_solo(options);
}

TEST(Scheduler, GivesEachTheSameWherePagesAreScarce) {
  ScriptedModelOptions options;
  options.context = 512;
  options.pages = 8;  // one whole context: sequences have to give up their pages
  expect_as_solo(options);
}

TEST(Scheduler, GivesEachTheSameOneAtATime) {
  ScriptedModelOptions options;
  options.max_sequences = 1;
  expect_as_solo(options);
}

TEST(Scheduler, RunsAWindowedModelInAFewPages) {
  ScriptedModelOptions options;
  options.window = 100;
  options.pages = 16;
  options.prefill_chunk = 64;
  ScriptedModel scarce(pseudo_random, options);
  options.pages = 64;
  ScriptedModel ample(pseudo_random, options);
  std::vector<Generation> generations;
  for (int i = 0; i < 8; ++i) generations.push_back(scarce.model.generate(prompt(i), tokens(500)));
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(generations[i].summary().tokens,
              ample.model.generate(prompt(i), tokens(500)).summary().tokens);
  }
}

TEST(Scheduler, DecodesRunningSequencesBesideAChunkOfAPrompt) {
  std::counting_semaphore<> entered{0};
  std::counting_semaphore<> proceed{0};
  ScriptedModelOptions options;
  options.prefill_chunk = 100;
  options.before_forward = [&](const Batch&) {
    entered.release();
    proceed.acquire();
  };
  ScriptedModel script([](auto) { return 'x'; }, options);
  Generation first = script.model.generate("p", tokens(6));
  entered.acquire();
  Generation second = script.model.generate(std::string(250, 'q'), tokens(1));
  Generation third = script.model.generate(std::string(20, 'r'), tokens(1));
  proceed.release(1000);
  second.summary();
  first.summary();
  third.summary();
  const auto passes = script.executor->passes();
  ASSERT_GE(passes.size(), 4U);
  const auto rows = [&passes](std::size_t pass) {
    std::vector<std::uint32_t> result;
    for (const auto& slice : passes[pass]) result.push_back(slice.rows);
    return result;
  };
  EXPECT_THAT(rows(0), ::testing::ElementsAre(1));
  EXPECT_THAT(rows(1), ::testing::ElementsAre(1, 80, 20)) << "the short prompt gets all it needs";
  EXPECT_THAT(rows(2), ::testing::ElementsAre(1, 100));
  EXPECT_THAT(rows(3), ::testing::ElementsAre(1, 70));
}

TEST(Scheduler, SharesAChunkEvenlyAmongPrompts) {
  std::counting_semaphore<> entered{0};
  std::counting_semaphore<> proceed{0};
  ScriptedModelOptions options;
  options.prefill_chunk = 90;
  options.before_forward = [&](const Batch&) {
    entered.release();
    proceed.acquire();
  };
  ScriptedModel script([](auto) { return 'x'; }, options);
  Generation first = script.model.generate("p", tokens(1));
  entered.acquire();
  std::vector<Generation> generations;
  for (int i = 0; i < 3; ++i) {
    generations.push_back(script.model.generate(std::string(200, 'a' + i), tokens(1)));
  }
  proceed.release(1000);
  for (Generation& generation : generations) generation.summary();
  const auto passes = script.executor->passes();
  ASSERT_EQ(passes[1].size(), 3U);
  for (const auto& slice : passes[1]) EXPECT_EQ(slice.rows, 30U);
}

TEST(Scheduler, EndsOnlyTheGenerationThatFails) {
  ScriptedModelOptions options;
  options.before_forward = [](const Batch& batch) {
    if (std::count(batch.tokens.begin(), batch.tokens.end(), '!') > 0) {
      throw Error(ErrorCode::device, "a broken token");
    }
  };
  ScriptedModel script([](auto) { return 'x'; }, options);
  Generation good = script.model.generate("p", tokens(300));
  Generation bad = script.model.generate("oh!", tokens(300));
  Generation other = script.model.generate("q", tokens(300));
  try {
    bad.summary();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device);
  }
  EXPECT_EQ(good.summary().generated_tokens, 300U);
  EXPECT_EQ(other.summary().generated_tokens, 300U);
}

TEST(Scheduler, ReportsAnErrorAfterThePiecesBeforeIt) {
  ScriptedModel script([](std::span<const TokenId> seen) {
    if (seen.size() == 4) throw std::runtime_error("the script broke");
    return 'x';
  });
  Generation generation = script.model.generate("p");
  std::string text;
  EXPECT_THROW(
      {
        for (const std::string& piece : generation) text += piece;
      },
      std::runtime_error);
  EXPECT_EQ(text, "xxx");
  EXPECT_THROW(generation.summary(), std::runtime_error);
}

TEST(Scheduler, ComputesASharedPromptOnce) {
  ScriptedModel script([](auto) { return ScriptedTokenizer::kEnd; });
  const std::string shared(640, 's');
  script.model.generate(shared).summary();
  std::vector<Generation> generations;
  for (int i = 0; i < 8; ++i) {
    generations.push_back(script.model.generate(shared + static_cast<char>('a' + i)));
  }
  for (Generation& generation : generations) {
    EXPECT_EQ(generation.summary().reused_tokens, 640U);
  }
}

}  // namespace
}  // namespace edgerunner
