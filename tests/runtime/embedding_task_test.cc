#include "runtime/embedding_task.h"

#include <gtest/gtest.h>

#include <cmath>
#include <future>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "edgerunner/error.h"
#include "runtime/scheduler.h"
#include "support/scripted_executor.h"

namespace edgerunner::test {
namespace {

struct Outcome {
  std::promise<std::vector<float>> promise;
  std::shared_ptr<EmbeddingTask> task(std::vector<TokenId> tokens, Pooling pooling) {
    return std::make_shared<EmbeddingTask>(
        std::move(tokens), pooling,
        [this](std::vector<float> embedding) { promise.set_value(std::move(embedding)); },
        [this](const std::exception_ptr& error) { promise.set_exception(error); });
  }
};

TEST(EmbeddingTask, PoolsTheMeanOverChunksAndScalesIt) {
  Outcome outcome;
  const auto task = outcome.task({1, 2, 3}, Pooling::mean);
  EXPECT_EQ(task->take_hidden(0, 2, std::vector<float>{1, 2, 3, 4}), Task::Step::append);
  EXPECT_EQ(task->take_hidden(2, 1, std::vector<float>{5, 9}), Task::Step::done);
  const std::vector<float> embedding = outcome.promise.get_future().get();
  EXPECT_FLOAT_EQ(embedding[0], static_cast<float>(9 / std::sqrt(9.0 * 9 + 15 * 15)));
  EXPECT_FLOAT_EQ(embedding[1], static_cast<float>(15 / std::sqrt(9.0 * 9 + 15 * 15)));
}

TEST(EmbeddingTask, BeginsAgainWhereItsSequenceDoes) {
  Outcome outcome;
  const auto task = outcome.task({1, 2}, Pooling::mean);
  task->take_hidden(0, 1, std::vector<float>{100, 0});
  task->take_hidden(0, 1, std::vector<float>{0, 3});
  task->take_hidden(1, 1, std::vector<float>{0, 5});
  EXPECT_EQ(outcome.promise.get_future().get(), (std::vector<float>{0, 1}));
}

TEST(EmbeddingTask, TakesTheLastToken) {
  Outcome outcome;
  const auto task = outcome.task({1, 2}, Pooling::last);
  task->take_hidden(0, 2, std::vector<float>{7, 7, 0, 2});
  EXPECT_EQ(outcome.promise.get_future().get(), (std::vector<float>{0, 1}));
}

TEST(EmbeddingTask, FailsWhereTheBackendGivesNoHiddenStates) {
  ScriptedExecutor executor(300, [](std::span<const TokenId>) { return 0; });
  SchedulerOptions options;
  options.vocab_size = 300;
  options.dim = 2;
  Scheduler scheduler(executor, options);
  Outcome outcome;
  scheduler.submit(outcome.task({1, 2}, Pooling::mean));
  EXPECT_THROW(outcome.promise.get_future().get(), Error);
}

}  // namespace
}  // namespace edgerunner::test
