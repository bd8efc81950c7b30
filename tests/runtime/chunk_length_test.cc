#include "runtime/chunk_length.h"

#include <gtest/gtest.h>

namespace edgerunner::test {
namespace {

using Duration = ChunkLength::Duration;

TEST(ChunkLength, HasNoBoundByDefault) {
  ChunkLength chunk(Duration(0));
  chunk.took(512, Duration(10));
  EXPECT_EQ(chunk.next(512), 512U);
}

TEST(ChunkLength, FitsTheTimeThatWasMeasured) {
  ChunkLength chunk(Duration(0.1));
  EXPECT_LE(chunk.next(512), 64U) << "before anything was timed";
  chunk.took(64, Duration(0.064));
  EXPECT_EQ(chunk.next(512), 100U);
  EXPECT_EQ(chunk.next(50), 50U);
}

TEST(ChunkLength, ShrinksAtOnceAndGrowsByAndBy) {
  ChunkLength chunk(Duration(0.1));
  chunk.took(100, Duration(0.1));
  chunk.took(100, Duration(0.4));
  EXPECT_EQ(chunk.next(512), 25U);
  chunk.took(100, Duration(0.1));
  EXPECT_EQ(chunk.next(512), 40U);
}

TEST(ChunkLength, LearnsNothingFromPassesOfFewRows) {
  ChunkLength chunk(Duration(0.1));
  chunk.took(100, Duration(0.1));
  chunk.took(1, Duration(0.05));
  EXPECT_EQ(chunk.next(512), 100U);
}

TEST(ChunkLength, NeverGoesBelowWhatIsWorthAPass) {
  ChunkLength chunk(Duration(0.1));
  chunk.took(100, Duration(100));
  EXPECT_GE(chunk.next(512), 16U);
}

}  // namespace
}  // namespace edgerunner::test
