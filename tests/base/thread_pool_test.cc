#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace edgerunner {
namespace {

constexpr int kThreadCounts[] = {1, 2, 3, 8};  // also more than this machine may have cores

TEST(ThreadPool, RunsTheBodyOnTheCallerAndAtMostOnceOnEveryOtherThread) {
  for (const int threads : kThreadCounts) {
    ThreadPool pool(threads);
    ASSERT_EQ(pool.size(), threads);
    for (int round = 0; round < 1000; ++round) {
      std::vector<int> calls(static_cast<std::size_t>(threads));
      pool.run([&](ThreadPool::Worker& worker) {
        EXPECT_EQ(worker.count(), threads);
        ++calls[static_cast<std::size_t>(worker.index())];
      });
      EXPECT_EQ(calls[0], 1);
      for (const int count : calls) EXPECT_LE(count, 1);
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

TEST(ThreadPool, SharesALoopOutInRangesWithoutGapsOrRepeats) {
  for (const int threads : kThreadCounts) {
    ThreadPool pool(threads);
    std::vector<int> calls(1000);
    pool.run([&](ThreadPool::Worker& worker) {
      for (const std::uint32_t count : {1000U, 0U, 1U, 7U}) {
        worker.for_ranges(
            count,
            [&](std::uint32_t begin, std::uint32_t end) {
              EXPECT_LT(begin, end);
              for (std::uint32_t i = begin; i < end; ++i) ++calls[i];
            },
            [] {});
      }
    });
    EXPECT_EQ(calls[0], 3);
    EXPECT_EQ(calls[6], 2);
    for (std::size_t i = 7; i < calls.size(); ++i) ASSERT_EQ(calls[i], 1) << i;
  }
}

TEST(ThreadPool, WorkersBeginAtThePartsThatTheirIndicesSay) {
  ThreadPool pool(2);
  pool.run([](ThreadPool::Worker& worker) {
    EXPECT_EQ(worker.first_of(10), worker.index() == 0 ? 0U : 5U);
    EXPECT_EQ(worker.first_of(1), worker.index() == 0 ? 0U : 1U);
  });
}

// Plain memory, so that the thread sanitizer sees whether the loops order it.
TEST(ThreadPool, ALoopSeesWhatTheOneBeforeItWrote) {
  constexpr int kLoops = 10'000;
  for (const int threads : kThreadCounts) {
    ThreadPool pool(threads);
    const auto count = static_cast<std::uint32_t>(threads);
    std::vector<int> written(count);
    std::atomic<int> wrong{0};
    pool.run([&](ThreadPool::Worker& worker) {
      for (int i = 1; i <= kLoops; ++i) {
        worker.for_each(count, [&](std::uint32_t k) { written[k] = i; });
        worker.for_each(count, [&](std::uint32_t k) {
          if (written[(k + 1) % count] != i) ++wrong;
        });
      }
    });
    EXPECT_EQ(wrong, 0) << threads << " threads";
  }
}

TEST(ThreadPool, LoopsGoOnWithoutAThreadThatIsElsewhere) {
  ThreadPool pool(2);
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> done{false};
    std::atomic<int> calls{0};
    pool.run([&](ThreadPool::Worker& worker) {
      // The other thread stays away until the caller has been through all the loops.
      while (worker.index() == 1 && !done) std::this_thread::yield();
      for (int i = 0; i < 100; ++i) worker.for_each(3, [&](std::uint32_t) { ++calls; });
      if (worker.index() == 0) done = true;
    });
    EXPECT_EQ(calls, 300);
  }
}

TEST(ThreadPool, StopsWhileItsThreadsSleepOrSpin) {
  for (int i = 0; i < 100; ++i) {
    const auto pool = std::make_unique<ThreadPool>(4);
    if (i % 2 == 0) pool->run([](ThreadPool::Worker& worker) { worker.for_each(9, [](auto) {}); });
  }
}

}  // namespace
}  // namespace edgerunner
