#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <semaphore>
#include <stop_token>
#include <string>
#include <thread>

#include "edgerunner/error.h"
#include "support/scripted_model.h"

namespace edgerunner {
namespace {

using test::ScriptedModel;
using test::ScriptedModelOptions;

// A model that says x for ever, and stops before each forward pass until it is let go on.
struct SteppedModel {
  explicit SteppedModel(std::uint32_t prefill_chunk = 512)
      : script([](auto) { return 'x'; }, options(prefill_chunk)) {}
  ~SteppedModel() { let_go(); }

  ScriptedModelOptions options(std::uint32_t prefill_chunk) {
    ScriptedModelOptions result;
    result.prefill_chunk = prefill_chunk;
    result.before_forward = [this](const Batch&) {
      entered.release();
      if (!free_running) proceed.acquire();
    };
    return result;
  }
  void let_go() {
    free_running = true;
    proceed.release(2);
  }

  std::counting_semaphore<> entered{0};
  std::counting_semaphore<> proceed{0};
  std::atomic<bool> free_running = false;
  ScriptedModel script;
};

TEST(Cancellation, TakesEffectAtTheNextStep) {
  SteppedModel stepped;
  Generation generation = stepped.script.model.generate("p");
  stepped.entered.acquire();
  stepped.proceed.release();  // the prompt, which gives the first x
  stepped.entered.acquire();
  generation.cancel();
  stepped.let_go();  // the second
  EXPECT_EQ(generation.summary().finish_reason, FinishReason::cancelled);
  EXPECT_EQ(generation.summary().generated_tokens, 2U);
}

TEST(Cancellation, TakesEffectBetweenTheChunksOfALongPrompt) {
  SteppedModel stepped(10);
  std::stop_source source;
  Generation generation =
      stepped.script.model.generate(std::string(1000, 'p'), {}, source.get_token());
  stepped.entered.acquire();
  source.request_stop();
  stepped.let_go();
  EXPECT_EQ(generation.summary().finish_reason, FinishReason::cancelled);
  EXPECT_EQ(generation.summary().generated_tokens, 0U);
  EXPECT_EQ(stepped.script.executor->passes().size(), 1U);
}

TEST(Cancellation, ReachesAGenerationThatStillWaits) {
  ScriptedModelOptions options;
  options.max_sequences = 1;
  ScriptedModel script([](auto) { return 'x'; }, options);
  GenerateOptions endless;
  endless.circular_context = true;
  Generation running = script.model.generate("p", endless);
  running.begin();
  Generation waiting = script.model.generate("q", endless);
  waiting.cancel();
  EXPECT_EQ(waiting.summary().finish_reason, FinishReason::cancelled);
  running.cancel();
  EXPECT_EQ(running.summary().finish_reason, FinishReason::cancelled);
}

TEST(Cancellation, OfAllEndsEveryGenerationAndLeavesTheModelUsable) {
  ScriptedModel script([](auto) { return 'x'; });
  GenerateOptions endless;
  endless.circular_context = true;
  std::vector<Generation> generations;
  for (int i = 0; i < 12; ++i) {
    generations.push_back(script.model.generate(std::string(i + 1, 'p'), endless));
  }
  script.model.cancel_all();
  for (Generation& generation : generations) {
    EXPECT_EQ(generation.summary().finish_reason, FinishReason::cancelled);
  }
  GenerateOptions two;
  two.max_tokens = 2;
  Generation next = script.model.generate("p", two);
  EXPECT_EQ(next.summary().generated_tokens, 2U);
}

// Endless, for a generation runs ahead of its reader and would fill its context meanwhile.
TEST(Cancellation, HappensWhereTheCallbackSaysSo) {
  ScriptedModel script([](auto) { return 'x'; });
  GenerateOptions endless;
  endless.circular_context = true;
  int pieces = 0;
  const Summary summary = script.model.generate(
      "p", [&pieces](std::string_view) { return ++pieces < 3; }, endless);
  EXPECT_EQ(pieces, 3);
  EXPECT_EQ(summary.finish_reason, FinishReason::cancelled);
}

TEST(Cancellation, HappensWhereTheCallbackThrows) {
  ScriptedModel script([](auto) { return 'x'; });
  const Model::PieceCallback thrower = [](std::string_view) -> bool {
    throw std::runtime_error("enough");
  };
  EXPECT_THROW(script.model.generate("p", thrower), std::runtime_error);
}

TEST(Cancellation, HappensWhenTheGenerationIsDestroyedOrReplaced) {
  ScriptedModel script([](auto) { return 'x'; });
  GenerateOptions endless;
  endless.circular_context = true;
  { const Generation dropped = script.model.generate("p", endless); }
  Generation replaced = script.model.generate("p", endless);
  GenerateOptions two;
  two.max_tokens = 2;
  replaced = script.model.generate("p", two);
  EXPECT_EQ(replaced.summary().generated_tokens, 2U);
}

TEST(Cancellation, HappensWhenTheModelIsDestroyed) {
  GenerateOptions endless;
  endless.circular_context = true;
  std::optional<ScriptedModel> script(std::in_place, [](auto) { return 'x'; });
  Generation generation = script->model.generate("p", endless);
  Session session = script->model.session();
  generation.begin();
  script.reset();
  EXPECT_EQ(generation.summary().finish_reason, FinishReason::cancelled);
  const std::vector<TokenId> tokens = {1};
  try {
    session.logits(tokens);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled);
  }
}

TEST(Cancellation, BeforeTheStartGivesNothing) {
  ScriptedModel script([](auto) { return 'x'; });
  std::stop_source source;
  source.request_stop();
  Generation generation = script.model.generate("p", {}, source.get_token());
  EXPECT_EQ(generation.begin(), generation.end());
  EXPECT_EQ(generation.summary().finish_reason, FinishReason::cancelled);
  EXPECT_TRUE(script.executor->passes().empty());
}

}  // namespace
}  // namespace edgerunner
