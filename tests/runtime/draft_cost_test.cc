#include "runtime/draft_cost.h"

#include <gtest/gtest.h>

namespace edgerunner {
namespace {

using Duration = DraftCost::Duration;

TEST(DraftCost, IsUnknownUntilAPassWithoutGuessesWasTimed) {
  DraftCost cost;
  EXPECT_FALSE(cost.knows(1));
  cost.took(1, 4, Duration(1));
  EXPECT_FALSE(cost.knows(1));
  cost.took(1, 0, Duration(1));
  EXPECT_TRUE(cost.knows(1));
  EXPECT_FALSE(cost.knows(2));
}

TEST(DraftCost, LearnsAStepAndASlope) {
  DraftCost cost;
  for (int i = 0; i < 200; ++i) {
    cost.took(1, 0, Duration(2));
    cost.took(1, 2, Duration(2 * (3 + 0.5 * 2)));
    cost.took(1, 10, Duration(2 * (3 + 0.5 * 10)));
  }
  EXPECT_DOUBLE_EQ(cost.of(0), 1);
  EXPECT_NEAR(cost.of(2), 3, 0.6);  // a pass for each guess would have cost as much
  EXPECT_NEAR(cost.of(10), 8, 0.6);
}

TEST(DraftCost, TakesNoGuessForDearerThanAPassOfItsOwn) {
  DraftCost cost;
  cost.took(1, 0, Duration(1));
  for (int i = 0; i < 200; ++i) cost.took(1, 3, Duration(1000));
  EXPECT_LE(cost.of(3), 4.1);
}

TEST(DraftCost, ComparesPassesOfAsManySequences) {
  DraftCost cost;
  cost.took(1, 0, Duration(1));
  cost.took(4, 0, Duration(10));
  for (int i = 0; i < 200; ++i) cost.took(4, 8, Duration(20));
  EXPECT_NEAR(cost.of(8), 2, 0.2);
}

}  // namespace
}  // namespace edgerunner
