#include "backend/cpu/limits/handover.h"

#include <gtest/gtest.h>

namespace edgerunner::cpu {
namespace {

double handover_of(int threads) {
  ThreadPool pool(threads);
  return measure_handover(pool);
}

TEST(Handover, NeedsTwoThreads) { EXPECT_EQ(handover_of(1), 0); }

TEST(Handover, TakesNanosecondsToMilliseconds) {
  double seconds = 0;
  for (int i = 0; i < 50 && seconds == 0; ++i) seconds = handover_of(2);  // on a busy machine
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
