#include "runtime/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "edgerunner/error.h"

namespace edgerunner {
namespace {

constexpr std::uint64_t kMebibyte = 1 << 20;

// A backend that takes 1 MiB a page and 10 MiB of scratch.
MemoryPlanInput input(std::optional<std::uint64_t> available_mib) {
  MemoryPlanInput input;
  input.weights_bytes = 100 * kMebibyte;
  input.trained_context = 32768;
  if (available_mib) input.available = *available_mib * kMebibyte;
  input.need = [](const ExecutorOptions& options) {
    return MemoryNeed{options.pages * kMebibyte, 10 * kMebibyte};
  };
  return input;
}

ModelOptions with_context(std::uint32_t context) {
  ModelOptions options;
  options.context = context;
  return options;
}

void expect_error(ErrorCode code, const std::string& part, const std::function<void()>& act) {
  try {
    act();
    FAIL() << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_THAT(error.what(), ::testing::HasSubstr(part));
  }
}

TEST(MemoryPlan, TakesTheTrainedContextUpTo8192) {
  EXPECT_EQ(plan_memory({}, input({})).context, 8192U);
  MemoryPlanInput small = input({});
  small.trained_context = 2000;
  EXPECT_EQ(plan_memory({}, small).context, 2000U);
}

TEST(MemoryPlan, HoldsTwoContextsWhereThereIsRoomAndOneWhereThereIsNot) {
  EXPECT_EQ(plan_memory({}, input(1000)).executor.pages, 256U);
  EXPECT_EQ(plan_memory({}, input(300)).executor.pages, 128U);
}

TEST(MemoryPlan, GivesShortContextsRoomForEverySequence) {
  EXPECT_EQ(plan_memory(with_context(256), input({})).executor.pages, 4U + 7 * 4);
  ModelOptions single = with_context(256);
  single.max_sequences = 1;
  EXPECT_EQ(plan_memory(single, input({})).executor.pages, 4U);
}

TEST(MemoryPlan, ShortensTheDefaultContextToWhatFits) {
  const MemoryPlan plan = plan_memory({}, input(100 + 10 + 20));
  EXPECT_EQ(plan.context, 20U * kPageTokens);
  EXPECT_EQ(plan.cache_bytes, 20 * kMebibyte);
}

TEST(MemoryPlan, RefusesAContextThatDoesNotFitAndNamesOneThatDoes) {
  expect_error(ErrorCode::out_of_memory,
               "it takes 174.0 MiB (weights 100.0, cache 64.0, scratch 10.0) and 130.0 MiB are "
               "available; a context of 1280 tokens would fit",
               [] { plan_memory(with_context(4096), input(130)); });
}

TEST(MemoryPlan, SaysThatNoContextFits) {
  expect_error(ErrorCode::out_of_memory, "no context would fit",
               [] { plan_memory({}, input(110)); });
}

TEST(MemoryPlan, RefusesMoreContextThanTheModelWasTrainedFor) {
  expect_error(ErrorCode::invalid_argument,
               "40000 tokens is wanted, but the model was trained for 32768",
               [] { plan_memory(with_context(40000), input({})); });
}

// Of a backend that likes large chunks and takes 1 MiB of scratch a row.
std::uint32_t chunk(std::uint32_t asked, std::optional<std::uint64_t> available_mib) {
  MemoryPlanInput hungry = input(available_mib);
  hungry.prefill_chunk = 4096;
  hungry.need = [](const ExecutorOptions& options) {
    return MemoryNeed{options.pages * kMebibyte, options.max_rows * kMebibyte};
  };
  ModelOptions options = with_context(8192);
  options.prefill_chunk = asked;
  const ExecutorOptions planned = plan_memory(options, hungry).executor;
  return planned.max_rows - planned.max_logit_rows;
}

TEST(MemoryPlan, TakesTheBackendsChunkWhereThereIsMemory) {
  EXPECT_EQ(chunk(0, {}), 4096U);
  EXPECT_EQ(chunk(0, 16 * 5000), 4096U);
  EXPECT_EQ(chunk(0, 16 * 4000), 2048U);
  EXPECT_EQ(chunk(0, 2000), 512U);
  EXPECT_EQ(chunk(0, 100 + 128 + 520), 512U);  // with which the context just fits
  EXPECT_EQ(chunk(100, {}), 100U);
}

TEST(MemoryPlan, TellsWhatAContextTakesWhetherItFitsOrNot) {
  MemoryPlanInput hungry = input(2000);
  hungry.prefill_chunk = 4096;
  hungry.need = [](const ExecutorOptions& options) {
    return MemoryNeed{options.pages * kMebibyte, options.max_rows * kMebibyte};
  };
  const MemoryPlan fitting = plan_context(with_context(8192), hungry);
  EXPECT_EQ(fitting.cache_bytes, 128 * kMebibyte);  // without pages for others
  EXPECT_EQ(fitting.scratch_bytes, plan_memory(with_context(8192), hungry).scratch_bytes);
  hungry.available = 100 * kMebibyte;
  EXPECT_EQ(plan_context(with_context(8192), hungry).scratch_bytes, fitting.scratch_bytes);
  EXPECT_EQ(plan_context(with_context(32768), hungry).cache_bytes, 512 * kMebibyte);
}

TEST(MemoryPlan, NamesTheOptionThatIsOutOfRange) {
  ModelOptions options;
  options.threads = -1;
  expect_error(ErrorCode::invalid_argument, "threads", [&] { plan_memory(options, input({})); });
  options = {};
  options.prefill_chunk = 32769;
  expect_error(ErrorCode::invalid_argument, "prefill_chunk",
               [&] { plan_memory(options, input({})); });
  options = {};
  options.max_sequences = 0;
  expect_error(ErrorCode::invalid_argument, "max_sequences",
               [&] { plan_memory(options, input({})); });
}

}  // namespace
}  // namespace edgerunner
