#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

namespace edgerunner {
namespace {

constexpr int kThreadCounts[] = {1, 2, 3, 8};  // also more than this machine may have cores

TEST(ThreadPool, RunsTheBodyOnceOnEveryThread) {
  for (const int threads : kThreadCounts) {
    ThreadPool pool(threads);
    ASSERT_EQ(pool.size(), threads);
    for (int round = 0; round < 100; ++round) {
      std::vector<int> calls(static_cast<std::size_t>(threads));
      pool.run([&](ThreadPool::Worker& worker) {
        EXPECT_EQ(worker.count(), threads);
        ++calls[static_cast<std::size_t>(worker.index())];
      });
      EXPECT_EQ(calls, std::vector<int>(static_cast<std::size_t>(threads), 1));
    }
  }
}

TEST(ThreadPool, SharesALoopOutWithoutGapsOrRepeats) {
  for (const int threads : kThreadCounts) {
    ThreadPool pool(threads);
    std::vector<int> calls(1000);
    pool.run([&](ThreadPool::Worker& worker) {
      for (const std::uint32_t count : {1000U, 0U, 1U, 7U}) {
        worker.for_each(count, [&](std::uint32_t i) { ++calls[i]; });
      }
    });
    EXPECT_EQ(calls[0], 3);
    EXPECT_EQ(calls[6], 2);
    for (std::size_t i = 7; i < calls.size(); ++i) ASSERT_EQ(calls[i], 1) << i;
  }
}

// Plain memory, so that the thread sanitizer sees whether the barrier orders it.
TEST(ThreadPool, BarriersMakeEveryonesWritesVisible) {
  constexpr int kBarriers = 10'000;
  for (const int threads : kThreadCounts) {
    ThreadPool pool(threads);
    const auto count = static_cast<std::size_t>(threads);
    std::vector<int> written(count);
    std::atomic<int> wrong{0};
    pool.run([&](ThreadPool::Worker& worker) {
      const auto self = static_cast<std::size_t>(worker.index());
      for (int i = 1; i <= kBarriers; ++i) {
        written[self] = i;
        worker.barrier();
        if (written[(self + 1) % count] != i) ++wrong;
        worker.barrier();
      }
    });
    EXPECT_EQ(wrong, 0) << threads << " threads";
  }
}

TEST(ThreadPool, StopsWhileItsThreadsSleepOrSpin) {
  for (int i = 0; i < 100; ++i) {
    const auto pool = std::make_unique<ThreadPool>(4);
    if (i % 2 == 0) pool->run([](ThreadPool::Worker&) {});
  }
}

}  // namespace
}  // namespace edgerunner
