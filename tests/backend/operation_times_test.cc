#include "backend/operation_times.h"

#include <gmock/gmock.h>

#include <numeric>

#include "backend/executor.h"
#include "support/random_decoder.h"

namespace edgerunner::test {
namespace {

using Clock = std::chrono::steady_clock;

TEST(OperationTimes, LapsAddUpToTheWhole) {
  OperationTimes times;
  const auto before = Clock::now();
  times.begin();
  const auto begun = Clock::now();
  while (Clock::now() - begun < std::chrono::milliseconds(2)) continue;
  times.lap(Operation::qkv);
  times.lap(Operation::other);
  times.add(Operation::sampling, 1.5);
  const auto whole = std::chrono::duration<double>(Clock::now() - before).count();
  constexpr double kRounding = 1e-9;
  const double laps = times.seconds(Operation::qkv) + times.seconds(Operation::other);
  EXPECT_GE(times.seconds(Operation::qkv), 2e-3 - kRounding);
  EXPECT_LE(laps, whole + kRounding);
  EXPECT_EQ(times.seconds(Operation::sampling), 1.5);
  EXPECT_NEAR(times.total(), 1.5 + laps, kRounding);
  EXPECT_EQ(times.passes(), 1);
  times.clear();
  EXPECT_EQ(times.total(), 0);
  EXPECT_EQ(times.passes(), 0);
}

// What a pass of 70 tokens and then one of a single token gives, measured or not.
std::vector<float> run(const RandomDecoder& model, OperationTimes* times, double& seconds) {
  const auto executor = make_cpu_executor(
      model.decoder(), {.threads = 2, .max_rows = 128, .pages = 2, .max_context = 128});
  executor->profilable()->record(times);
  const auto tokens = model.tokens(71, 3);
  const std::vector<PageId> pages{0, 1};
  const std::vector<std::uint32_t> last{69};
  const std::vector<std::uint32_t> first{0};
  std::vector<float> logits(2 * std::size_t{model.decoder().spec.vocab_size});
  const std::span<float> rows(logits);
  const auto start = Clock::now();
  const SequenceSlice prompt{70, 0, pages};
  executor->forward({std::span(tokens).first(70), {&prompt, 1}, last}, rows.first(97));
  const SequenceSlice next{1, 70, pages};
  executor->forward({std::span(tokens).last(1), {&next, 1}, first}, rows.last(97));
  seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return logits;
}

TEST(OperationTimes, OfAnExecutorCoverItsPassesAndLeaveTheBits) {
  const RandomDecoder model({.type = ElementType::q8_0});
  double seconds = 0;
  const std::vector<float> unmeasured = run(model, nullptr, seconds);
  OperationTimes times;
  const std::vector<float> measured = run(model, &times, seconds);
  EXPECT_EQ(measured, unmeasured);
  EXPECT_EQ(times.passes(), 2);
  EXPECT_LE(times.total(), seconds + 1e-9);
  for (std::size_t i = 0; i < kOperations; ++i) {
    const auto operation = static_cast<Operation>(i);
    if (operation == Operation::sampling) continue;
    EXPECT_GT(times.seconds(operation), 0) << name(operation);
  }
}

}  // namespace
}  // namespace edgerunner::test
