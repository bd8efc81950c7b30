#include "backend/cpu/limits/handover.h"

#include <gtest/gtest.h>

namespace edgerunner::cpu {
namespace {

TEST(Handover, NeedsTwoThreads) { EXPECT_EQ(measure_handover(1), 0); }

// Of more threads than cores, too, which take turns.
TEST(Handover, TakesNanosecondsToMilliseconds) {
  for (const int threads : {2, 5}) {
    const double seconds = measure_handover(threads);
    EXPECT_GT(seconds, 1e-9) << threads;
    EXPECT_LT(seconds, 1e-1) << threads;
  }
}

}  // namespace
}  // namespace edgerunner::cpu
