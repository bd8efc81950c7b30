#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "base/half.h"
#include "edgerunner/error.h"
#include "tensor/dequantize.h"
#include "tensor/quantize.h"

// The K and IQ4 formats leave the quantiser a choice, so that it is judged by the error.

namespace edgerunner {
namespace {

using ::testing::HasSubstr;

constexpr std::array kFitted = {ElementType::q2_k,  ElementType::q3_k, ElementType::q4_k,
                                ElementType::q5_k,  ElementType::q6_k, ElementType::iq4_nl,
                                ElementType::iq4_xs};

std::vector<float> round_trip(ElementType type, const std::vector<float>& values,
                              const std::vector<float>& importance = {}) {
  std::vector<std::byte> blocks(row_bytes(type, values.size()));
  quantize(type, values, blocks, importance);
  std::vector<float> out(values.size());
  dequantize(type, blocks, out);
  return out;
}

std::vector<float> gaussian(std::size_t count) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0.0F, 0.02F);
  std::vector<float> values(count);
  for (float& value : values) value = f16_to_f32(f32_to_f16(normal(random)));
  return values;
}

// sqrt(sum (y - x)^2 / sum x^2)
double relative_error(const std::vector<float>& x, const std::vector<float>& y,
                      std::size_t stride = 1) {
  double error = 0;
  double power = 0;
  for (std::size_t i = 0; i < x.size(); i += stride) {
    const double off = static_cast<double>(y[i]) - static_cast<double>(x[i]);
    error += off * off;
    power += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  }
  return std::sqrt(error / power);
}

// What the field's reference quantiser reaches on Gaussian weights of deviation 0.02, rounded to
// F16, without importance (../shared/fixtures/quant/kquant_rmse.json).
double reference_error(ElementType type) {
  switch (type) {
    case ElementType::q2_k:
      return 0.295243;
    case ElementType::q3_k:
      return 0.150768;
    case ElementType::q4_k:
      return 0.071303;
    case ElementType::q5_k:
      return 0.036121;
    case ElementType::q6_k:
      return 0.017549;
    case ElementType::iq4_nl:
      return 0.076093;
    default:
      return 0.076735;  // IQ4_XS
  }
}

TEST(QuantizeFitted, ErrsNoMoreThanTheReferenceQuantiserOnGaussianWeights) {
  const std::vector<float> x = gaussian(64 * 1024);
  for (const ElementType type : kFitted) {
    const double error = relative_error(x, round_trip(type, x));
    RecordProperty(std::string(traits(type).name), std::to_string(error));
    EXPECT_LE(error, reference_error(type)) << traits(type).name;
    EXPECT_GE(error, reference_error(type) / 2) << traits(type).name << " can't be that good";
  }
}

TEST(QuantizeFitted, ImportanceMovesTheErrorToWhereItCountsLess) {
  const std::vector<float> x = gaussian(16 * 1024);
  std::vector<float> importance(x.size(), 0.01F);
  for (std::size_t i = 0; i < importance.size(); i += 4) importance[i] = 1.0F;
  for (const ElementType type : kFitted) {
    EXPECT_LT(relative_error(x, round_trip(type, x, importance), 4),
              0.9 * relative_error(x, round_trip(type, x), 4))
        << traits(type).name;
  }
}

TEST(QuantizeFitted, KeepsZerosAndIgnoresWeightsOfZero) {
  const std::vector<float> zeros(512, 0.0F);
  const std::vector<float> x = gaussian(512);
  for (const ElementType type : kFitted) {
    EXPECT_EQ(round_trip(type, zeros), zeros) << traits(type).name;
    for (const float value : round_trip(type, x, zeros)) EXPECT_TRUE(std::isfinite(value));
  }
}

// One magnitude for a whole block, either sign: minima can't be negative, codes aren't symmetric.
TEST(QuantizeFitted, HoldsConstantBlocks) {
  for (const ElementType type : kFitted) {
    for (const float value : {0.25F, -0.25F, 3e3F, -3e3F, 1e-3F}) {
      const std::vector<float> x(256, value);
      for (const float got : round_trip(type, x)) {
        EXPECT_NEAR(got, value, 0.04 * std::abs(value)) << traits(type).name;
      }
    }
  }
}

TEST(QuantizeFitted, ASpikeKeepsItsMagnitude) {
  for (const ElementType type : kFitted) {
    for (const float spike : {6e4F, -6e4F}) {
      std::vector<float> x = gaussian(256);
      x[77] = spike;
      const std::vector<float> y = round_trip(type, x);
      EXPECT_NEAR(y[77], spike, 0.02 * std::abs(spike)) << traits(type).name;
      EXPECT_LT(std::abs(y[200]), 0.1F) << traits(type).name;
    }
  }
}

TEST(QuantizeFitted, NamesTheValueThatDoesNotFit) {
  for (const ElementType type : kFitted) {
    for (const float bad : {std::nanf(""), INFINITY, 3e38F}) {
      std::vector<float> x = gaussian(512);
      x[300] = bad;
      try {
        round_trip(type, x);
        ADD_FAILURE() << traits(type).name << " took " << bad;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
        EXPECT_THAT(error.what(), HasSubstr(std::string(traits(type).name)));
      }
    }
  }
}

// With importance the blocks of 32 are fitted too: never worse than where the extremes dictate.
TEST(QuantizeFitted, ImportanceLowersTheErrorOfBlocksOf32) {
  const std::vector<float> x = gaussian(64 * 1024);
  const std::vector<float> equal(x.size(), 1.0F);
  for (const ElementType type :
       {ElementType::q4_0, ElementType::q4_1, ElementType::q5_0, ElementType::q5_1}) {
    EXPECT_LT(relative_error(x, round_trip(type, x, equal)), relative_error(x, round_trip(type, x)))
        << traits(type).name;
  }
}

TEST(QuantizeFitted, AFinerGridFindsTheCoarserOneInIt) {
  const std::vector<float> coarse = round_trip(ElementType::q4_1, gaussian(4096));
  const std::vector<float> equal(coarse.size(), 1.0F);
  EXPECT_LT(relative_error(coarse, round_trip(ElementType::q5_1, coarse, equal)), 1e-3);
}

TEST(QuantizeFitted, ABlockOfOneValueStaysInAllTypesOf32) {
  const std::vector<float> x(64, 1.5F);
  const std::vector<float> equal(x.size(), 1.0F);
  for (const ElementType type :
       {ElementType::q4_0, ElementType::q4_1, ElementType::q5_0, ElementType::q5_1}) {
    EXPECT_LT(relative_error(x, round_trip(type, x, equal)), 1e-3) << traits(type).name;
  }
}

}  // namespace
}  // namespace edgerunner
