#include "runtime/divergence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace edgerunner {
namespace {

TEST(Divergence, OfTheSameLogitsIsNone) {
  const std::vector<float> logits{1, -2, 700, 3};
  const Divergence d = divergence(logits, logits);
  EXPECT_EQ(d.difference, 0);
  EXPECT_EQ(d.kl, 0);
  EXPECT_TRUE(d.same_top);
}

TEST(Divergence, IsTheKullbackLeiblerSum) {
  // p = (3/4, 1/4), q = (1/4, 3/4), both shifted by a constant that softmax ignores.
  const auto three = static_cast<float>(std::log(3.0));
  const std::vector<float> p{three + 5, 5};
  const std::vector<float> q{-2, three - 2};
  const Divergence d = divergence(p, q);
  EXPECT_NEAR(d.kl, 0.75 * std::log(3.0) + 0.25 * std::log(1.0 / 3), 1e-6);
  EXPECT_NEAR(d.difference, 7 + std::log(3.0), 1e-6);
  EXPECT_FALSE(d.same_top);
}

TEST(Divergence, NotANumberIsNotOverlooked) {
  const std::vector<float> good{1, 2};
  const std::vector<float> bad{1, NAN};
  EXPECT_FALSE(divergence(good, bad).difference <= 1e9);
}

TEST(NegativeLogLikelihood, StandsLargeLogits) {
  const std::vector<float> logits{1000, 1000, -1000};
  EXPECT_NEAR(negative_log_likelihood(logits, 0), std::log(2.0), 1e-12);
  EXPECT_NEAR(negative_log_likelihood(logits, 2), 2000 + std::log(2.0), 1e-9);
}

TEST(TopGap, IsBetweenTheTwoLargest) {
  EXPECT_EQ(top_gap(std::vector<float>{3, 1, 7, 5}), 2);
  EXPECT_EQ(top_gap(std::vector<float>{7, 7}), 0);
}

}  // namespace
}  // namespace edgerunner
