#include "runtime/draft_length.h"

#include <gtest/gtest.h>

namespace edgerunner {
namespace {

// A pass with n guesses takes 1 + n * slope times as long as one without.
DraftCost costs(double slope) {
  DraftCost cost;
  cost.took(1, 0, DraftCost::Duration(1));
  for (int i = 0; i < 500; ++i) {
    cost.took(1, 1, DraftCost::Duration(1 + slope));
    cost.took(1, 16, DraftCost::Duration(1 + 16 * slope));
  }
  return cost;
}

TEST(DraftLength, GrowsWhereGuessesAreRight) {
  const DraftCost cost = costs(0.1);
  DraftLength length;
  const std::uint32_t first = length.next(cost, 1, 16);
  EXPECT_GT(first, 1U);
  for (int i = 0; i < 10; ++i) {
    const std::uint32_t count = length.next(cost, 1, 16);
    length.took(count, count);
  }
  EXPECT_GT(length.next(cost, 1, 16), first);
  EXPECT_EQ(length.next(cost, 1, 3), 3U);
}

TEST(DraftLength, TriesEverMoreRarelyWhereGuessesAreWrong) {
  const DraftCost cost = costs(0.3);
  DraftLength length;
  int drafts = 0;
  for (int pass = 0; pass < 1000; ++pass) {
    const std::uint32_t count = length.next(cost, 1, 16);
    if (count == 0) continue;
    ++drafts;
    length.took(count, 0);
  }
  EXPECT_LT(drafts, 30);
  EXPECT_GT(drafts, 10);
}

TEST(DraftLength, ComesBackWhereTheTextBeginsToRepeat) {
  const DraftCost cost = costs(0.2);
  DraftLength length;
  for (int pass = 0; pass < 300; ++pass) {
    const std::uint32_t count = length.next(cost, 1, 16);
    if (count > 0) length.took(count, 0);
  }
  int passes = 0;
  for (std::uint32_t count = 0; count < 6 && passes < 1000; ++passes) {
    count = length.next(cost, 1, 16);
    if (count > 0) length.took(count, count);
  }
  EXPECT_LT(passes, 80);
}

TEST(DraftLength, IsShorterWhereRowsAreDearer) {
  DraftLength length;
  EXPECT_GT(length.next(costs(0.05), 1, 16), length.next(costs(0.25), 1, 16));
  EXPECT_GT(length.next(costs(0.05), 1, 16), length.next(costs(0.05), 6, 16));
}

}  // namespace
}  // namespace edgerunner
