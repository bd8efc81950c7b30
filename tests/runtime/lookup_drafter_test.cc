#include "runtime/lookup_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace edgerunner {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<TokenId> guess(LookupDrafter& drafter, const std::vector<TokenId>& tokens,
                           std::uint32_t most, std::uint64_t sequence = 1) {
  std::vector<TokenId> guesses;
  const DraftRequest request{
      .sequence = sequence, .tokens = tokens, .most = most, .guesses = &guesses};
  drafter.draft({&request, 1});
  return guesses;
}

TEST(LookupDrafter, CopiesWhatFollowedBefore) {
  LookupDrafter drafter;
  EXPECT_THAT(guess(drafter, {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3}, 4), ElementsAre(4, 5, 6, 7));
}

TEST(LookupDrafter, GuessesNothingWithoutAnEarlierOccurrence) {
  LookupDrafter drafter;
  EXPECT_THAT(guess(drafter, {1}, 4), IsEmpty());
  EXPECT_THAT(guess(drafter, {1, 2, 3, 4, 5}, 4, 2), IsEmpty());
  EXPECT_THAT(guess(drafter, {1, 2, 3, 4, 9, 2, 3}, 4, 3), IsEmpty());  // two tokens are too few
}

TEST(LookupDrafter, FollowsTheLongestMatch) {
  LookupDrafter drafter;
  const std::vector<TokenId> tokens = {9, 1, 2, 3, 50, 8, 1, 2, 3, 60, 9, 1, 2, 3};
  EXPECT_THAT(guess(drafter, tokens, 1), ElementsAre(50));
}

TEST(LookupDrafter, FollowsTheLatestOfEquals) {
  LookupDrafter drafter;
  EXPECT_THAT(guess(drafter, {1, 2, 3, 50, 1, 2, 3, 60, 1, 2, 3}, 1), ElementsAre(60));
}

TEST(LookupDrafter, CopiesFromItsOwnCopy) {
  LookupDrafter drafter;
  EXPECT_THAT(guess(drafter, {7, 1, 2, 1, 2, 1, 2}, 7), ElementsAre(1, 2, 1, 2, 1, 2, 1));
}

TEST(LookupDrafter, GuessesMoreTheLongerTheMatch) {
  LookupDrafter drafter;
  std::vector<TokenId> tokens;
  for (TokenId token = 0; token < 40; ++token) tokens.push_back(token);
  std::vector<TokenId> copy = tokens;
  copy.insert(copy.end(), {0, 1, 2});
  EXPECT_EQ(guess(drafter, copy, 16).size(), 9U);
  copy.insert(copy.end(), {3, 4, 5});
  EXPECT_EQ(guess(drafter, copy, 16).size(), 16U);
}

TEST(LookupDrafter, KnowsSequencesApartAndForgetsThem) {
  LookupDrafter drafter;
  EXPECT_THAT(guess(drafter, {1, 2, 3, 4, 1, 2, 3}, 1, 1), ElementsAre(4));
  EXPECT_THAT(guess(drafter, {1, 2, 3, 5, 1, 2, 3}, 1, 2), ElementsAre(5));
  drafter.forget(1);
  drafter.forget(77);
  EXPECT_THAT(guess(drafter, {8, 8, 6, 2, 3, 7, 2, 3}, 1, 1), IsEmpty());
}

}  // namespace
}  // namespace edgerunner
