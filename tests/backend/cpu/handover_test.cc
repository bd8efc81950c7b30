#include "backend/cpu/limits/handover.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

namespace edgerunner::cpu {
namespace {

using namespace std::chrono_literals;

double handover_of(int threads) {
  ThreadPool pool(threads);
  return measure_handover(pool);
}

TEST(Handover, NeedsTwoThreads) { EXPECT_EQ(handover_of(1), 0); }

TEST(Handover, TakesNanosecondsToMilliseconds) {
  // On a busy machine, or in an emulator, each turn of either thread may take milliseconds.
  ThreadPool pool(2);
  double seconds = 0;
  for (std::chrono::milliseconds most{100}; seconds == 0 && most < 15s; most *= 2) {
    seconds = measure_handover(pool, most);
  }
  EXPECT_GT(seconds, 1e-9);
  EXPECT_LT(seconds, 1e-1);
}

TEST(Handover, EndsWhereThreadsTakeTurnsOnACore) {
  const double seconds = handover_of(9);
  EXPECT_GE(seconds, 0);
  EXPECT_LT(seconds, 1e-1);
}

TEST(Handover, LeavesThePoolAsItWas) {
  ThreadPool pool(3);
  measure_handover(pool);
  std::atomic<int> calls{0};
  pool.run([&](ThreadPool::Worker& worker) { worker.for_each(100, [&](auto) { ++calls; }); });
  EXPECT_EQ(calls, 100);
}

}  // namespace
}  // namespace edgerunner::cpu
