#include "tensor/quantize.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/half.h"
#include "edgerunner/error.h"
#include "tensor/dequantize.h"
#include "tensor/quant_vectors.h"

namespace edgerunner {
namespace {

using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::array kBlockTypes = {ElementType::q8_0, ElementType::q4_0, ElementType::q4_1,
                                    ElementType::q5_0, ElementType::q5_1};

std::vector<std::byte> quantized(ElementType type, std::span<const float> values) {
  std::vector<std::byte> blocks(row_bytes(type, values.size()));
  quantize(type, values, blocks);
  return blocks;
}

std::vector<float> round_trip(ElementType type, std::span<const float> values) {
  std::vector<float> out(values.size());
  dequantize(type, quantized(type, values), out);
  return out;
}

std::vector<float> gaussian(std::size_t count, float deviation) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0F, deviation);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

Error thrown(ElementType type, std::span<const float> values, std::size_t bytes) {
  std::vector<std::byte> blocks(bytes);
  try {
    quantize(type, values, blocks);
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ErrorCode::io, ""};
}

TEST(Quantize, MatchesTheReferenceVectorsByteForByte) {
  EDGERUNNER_REQUIRE_SHARED_DATA();
  const test::QuantVectors vectors("quantize");
  const auto count = vectors.description().at("n_values").get<std::size_t>();
  const auto values = vectors.floats(vectors.description().at("input_offset"), count);
  for (const auto& entry : vectors.entries()) {
    const auto type = static_cast<ElementType>(entry.at("type_id").get<std::uint32_t>());
    const auto expected = vectors.bytes(entry.at("raw_offset"), entry.at("raw_bytes"));
    const auto blocks = quantized(type, values);
    ASSERT_EQ(blocks.size(), expected.size()) << traits(type).name;
    std::size_t same = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) same += blocks[i] == expected[i] ? 1 : 0;
    EXPECT_EQ(same, blocks.size()) << traits(type).name;
    EXPECT_EQ(round_trip(type, values), vectors.floats(entry.at("f32_offset"), count))
        << traits(type).name;
    fmt::print("{:5} {} of {} bytes identical\n", traits(type).name, same, blocks.size());
  }
}

// The relative error that the reference quantiser of the field reaches on Gaussian weights.
TEST(Quantize, ReachesTheReferenceErrorOnGaussianWeights) {
  EDGERUNNER_REQUIRE_SHARED_DATA();
  std::ifstream file(test::shared_dir() / "fixtures" / "quant" / "kquant_rmse.json");
  const auto reference = nlohmann::json::parse(file).at("formats");
  const auto values = gaussian(1 << 20, 0.02F);
  for (const ElementType type : {ElementType::q8_0, ElementType::q4_0}) {
    const auto restored = round_trip(type, values);
    double error = 0;
    double total = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      error += std::pow(static_cast<double>(restored[i]) - values[i], 2);
      total += std::pow(static_cast<double>(values[i]), 2);
    }
    const double relative = std::sqrt(error / total);
    const auto expected = reference.at(std::string(traits(type).name)).get<double>();
    EXPECT_NEAR(relative, expected, 0.01 * expected) << traits(type).name;
    fmt::print("{} relative error {:.6f}, reference {:.6f}\n", traits(type).name, relative,
               expected);
  }
}

TEST(Quantize, KeepsWhatTheFormatCanHold) {
  std::vector<float> values(32);
  for (int i = 0; i < 32; ++i) values[i] = static_cast<float>(i % 16 - 8) * 0.25F;
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16,
                                 ElementType::q4_0, ElementType::q5_0}) {
    EXPECT_EQ(round_trip(type, values), values) << traits(type).name;
  }
}

TEST(Quantize, StoresZerosAsZeros) {
  const std::vector<float> zeros(64, 0.0F);
  for (const ElementType type : kBlockTypes) {
    EXPECT_EQ(round_trip(type, zeros), zeros) << traits(type).name;
  }
}

TEST(Quantize, StoresAConstantBlock) {
  const std::vector<float> values(32, 1.5F);
  for (const ElementType type : kBlockTypes) {
    for (const float value : round_trip(type, values)) {
      EXPECT_NEAR(value, 1.5F, 1.5F / 1024) << traits(type).name;
    }
  }
}

TEST(Quantize, TurnsValuesBelowTheScaleIntoZeros) {
  for (const float tiny : {std::numeric_limits<float>::denorm_min(), 1e-40F, 1e-30F, 1e-12F}) {
    std::vector<float> values(32, tiny);
    values[7] = -tiny;
    for (const ElementType type : kBlockTypes) {
      for (const float value : round_trip(type, values)) {
        EXPECT_EQ(value, 0.0F) << traits(type).name << " of " << tiny;
      }
    }
  }
}

TEST(Quantize, PassesNanAndInfinityThroughFloatTypes) {
  const std::vector<float> values = {kNan, kInfinity, -kInfinity, 1e6F};
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    const auto out = round_trip(type, values);
    EXPECT_TRUE(std::isnan(out[0])) << traits(type).name;
    EXPECT_EQ(out[1], kInfinity) << traits(type).name;
    EXPECT_EQ(out[2], -kInfinity) << traits(type).name;
  }
  EXPECT_EQ(round_trip(ElementType::f16, values)[3], kInfinity);
}

TEST(Quantize, RefusesNanAndInfinityInBlocksAndNamesTheElement) {
  for (const ElementType type : kBlockTypes) {
    for (const float bad : {kNan, kInfinity, -kInfinity}) {
      std::vector<float> values(96, 1.0F);
      values[37] = bad;
      const Error error = thrown(type, values, row_bytes(type, 96));
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), HasSubstr("element 37 "));
      EXPECT_THAT(error.what(), HasSubstr(std::string(traits(type).name)));
    }
  }
}

TEST(Quantize, RefusesMagnitudesBeyondTheScale) {
  for (const ElementType type : kBlockTypes) {
    for (const float large : {1e8F, std::numeric_limits<float>::max()}) {
      std::vector<float> values(64, 1.0F);
      values[40] = large;
      values[41] = -large;
      const Error error = thrown(type, values, row_bytes(type, 64));
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), HasSubstr("elements 32 to 63"));
    }
  }
}

TEST(Quantize, RefusesWrongSizes) {
  const std::vector<float> values(64, 1.0F);
  for (const ElementType type : kBlockTypes) {
    const std::size_t bytes = row_bytes(type, 64);
    EXPECT_EQ(thrown(type, values, bytes - 1).code(), ErrorCode::invalid_argument);
    EXPECT_EQ(thrown(type, values, bytes + 1).code(), ErrorCode::invalid_argument);
    EXPECT_EQ(thrown(type, std::span(values).first(33), bytes).code(), ErrorCode::invalid_argument);
  }
}

TEST(Quantize, NamesAnUnsupportedType) {
  const std::vector<float> values(256, 1.0F);
  const Error error = thrown(ElementType::mxfp4, values, 136);
  EXPECT_EQ(error.code(), ErrorCode::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("MXFP4"));
}

}  // namespace
}  // namespace edgerunner
