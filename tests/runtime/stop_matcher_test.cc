#include "runtime/stop_matcher.h"

#include <gtest/gtest.h>

#include <random>

#include "edgerunner/error.h"

namespace edgerunner {
namespace {

struct Outcome {
  std::string text;
  bool stopped;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome run(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  StopMatcher matcher(stops);
  std::string text;
  for (const std::string& piece : pieces) text += matcher.push(piece);
  const bool stopped = matcher.stopped();
  text += matcher.finish();
  return {text, stopped};
}

TEST(StopMatcher, PassesEverythingWithoutStops) {
  EXPECT_EQ(run({}, {"a", "", "bc"}), (Outcome{"abc", false}));
}

TEST(StopMatcher, CutsBeforeAStopWithinAPiece) {
  EXPECT_EQ(run({"STOP"}, {"go STOP more"}), (Outcome{"go ", true}));
}

TEST(StopMatcher, FindsAStopAcrossPieces) {
  EXPECT_EQ(run({"\nUser:"}, {"hi\n", "Us", "e", "r: x"}), (Outcome{"hi", true}));
}

TEST(StopMatcher, ReleasesAFalseStartAsSoonAsItIsOne) {
  const std::vector<std::string> stops = {"abc"};
  StopMatcher matcher(stops);
  EXPECT_EQ(matcher.push("xab"), "x");
  EXPECT_EQ(matcher.push("ab"), "ab");
  EXPECT_EQ(matcher.push("x"), "abx");
  EXPECT_FALSE(matcher.stopped());
}

TEST(StopMatcher, ReleasesAnUnfinishedStopAtTheEnd) {
  EXPECT_EQ(run({"STOP"}, {"go ST", "O"}), (Outcome{"go STO", false}));
}

TEST(StopMatcher, FindsAStopThatOverlapsItsOwnFalseStart) {
  EXPECT_EQ(run({"aab"}, {"a", "a", "a", "b", "c"}), (Outcome{"a", true}));
}

TEST(StopMatcher, TakesTheStopThatEndsFirstHoweverTheTextIsCut) {
  const std::vector<std::string> stops = {"abcd", "bc"};
  EXPECT_EQ(run(stops, {"xabcd"}), (Outcome{"xa", true}));
  EXPECT_EQ(run(stops, {"xa", "b", "c", "d"}), (Outcome{"xa", true}));
}

TEST(StopMatcher, TakesTheLongestOfStopsThatEndTogether) {
  EXPECT_EQ(run({"bc", "abc"}, {"xab", "c"}), (Outcome{"x", true}));
}

TEST(StopMatcher, StopsAtTheVeryBeginning) { EXPECT_EQ(run({"a"}, {"abc"}), (Outcome{"", true})); }

TEST(StopMatcher, NeverCutsACharacter) {
  const std::vector<std::string> stops = {"é!"};
  StopMatcher matcher(stops);
  EXPECT_EQ(matcher.push("è"), "è");  // shares its first byte with the stop
  EXPECT_EQ(matcher.push("é"), "");
  EXPECT_EQ(matcher.push("é"), "é");
  EXPECT_EQ(matcher.push("!"), "");
  EXPECT_TRUE(matcher.stopped());
}

TEST(StopMatcher, AgreesWithASearchOfTheWholeText) {
  std::mt19937 random(3);
  const auto letters = [&random](std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += static_cast<char>('a' + random() % 2);
    return text;
  };
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::string> stops(1 + random() % 3);
    for (std::string& stop : stops) stop = letters(1 + random() % 6);
    const std::string text = letters(random() % 30);

    Outcome expected{text, false};
    for (std::size_t end = 1; end <= text.size() && !expected.stopped; ++end) {
      std::size_t longest = 0;
      for (const std::string& stop : stops) {
        if (stop.size() <= end && text.compare(end - stop.size(), stop.size(), stop) == 0) {
          longest = std::max(longest, stop.size());
        }
      }
      if (longest > 0) expected = {text.substr(0, end - longest), true};
    }

    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = random() % 4;
      pieces.push_back(text.substr(at, size));
      at += pieces.back().size();
    }
    ASSERT_EQ(run(stops, pieces), expected) << text;
  }
}

TEST(StopMatcher, RefusesStopsThatCanNotMatch) {
  const std::vector<std::string> empty = {""};
  const std::vector<std::string> half = {"\xC3"};
  EXPECT_THROW(StopMatcher{empty}, Error);
  EXPECT_THROW(StopMatcher{half}, Error);
}

}  // namespace
}  // namespace edgerunner
