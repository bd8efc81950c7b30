#include "tensor/dequantize.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "edgerunner/error.h"
#include "tensor/block_format.h"
#include "tensor/quant_vectors.h"

namespace edgerunner {
namespace {

using ::testing::HasSubstr;

ErrorCode code_of(ElementType type, std::size_t bytes, std::size_t elements) {
  const std::vector<std::byte> blocks(bytes);
  std::vector<float> out(elements);
  try {
    dequantize(type, blocks, out);
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::io;
}

TEST(Dequantize, MatchesTheReferenceVectorsBitForBit) {
  EDGERUNNER_REQUIRE_SHARED_DATA();
  const test::QuantVectors vectors("dequant");
  std::set<ElementType> seen;
  for (const auto& entry : vectors.entries()) {
    const auto name = entry.at("type").get<std::string>();
    const ElementTypeTraits* const type = find_element_type(entry.at("type_id").get<unsigned>());
    ASSERT_NE(type, nullptr) << name;
    EXPECT_EQ(type->name, name);
    EXPECT_EQ(type->block_length, entry.at("block_values").get<unsigned>()) << name;
    EXPECT_EQ(type->block_bytes, entry.at("block_bytes").get<unsigned>()) << name;
    if (!type->supported) continue;
    seen.insert(type->type);

    const auto count = entry.at("n_values").get<std::size_t>();
    const auto expected = vectors.floats(entry.at("f32_offset"), count);
    std::vector<float> values(count);
    dequantize(type->type, vectors.bytes(entry.at("raw_offset"), entry.at("raw_bytes")), values);
    std::size_t different = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const bool both_nan = std::isnan(values[i]) && std::isnan(expected[i]);
      if (!both_nan &&
          std::bit_cast<std::uint32_t>(values[i]) != std::bit_cast<std::uint32_t>(expected[i])) {
        ++different;
      }
    }
    EXPECT_EQ(different, 0U) << name;
    fmt::print("{:7} {} of {} values bit-exact\n", name, count - different, count);
  }
  for (const ElementTypeTraits& type : element_types()) {
    if (type.supported && type.type != ElementType::f32) {
      EXPECT_TRUE(seen.contains(type.type)) << type.name << " has no reference vectors";
    }
  }
}

TEST(Dequantize, ReadsBlocksAtAnyAddress) {
  EDGERUNNER_REQUIRE_SHARED_DATA();
  const test::QuantVectors vectors("dequant");
  for (const auto& entry : vectors.entries()) {
    const auto type = static_cast<ElementType>(entry.at("type_id").get<std::uint32_t>());
    if (!traits(type).supported) continue;
    const auto blocks = vectors.bytes(entry.at("raw_offset"), entry.at("raw_bytes"));
    std::vector<float> expected(entry.at("n_values").get<std::size_t>());
    dequantize(type, blocks, expected);
    for (std::size_t shift = 1; shift < 8; ++shift) {
      std::vector<std::byte> moved(blocks.size() + shift);
      std::copy(blocks.begin(), blocks.end(), moved.begin() + static_cast<std::ptrdiff_t>(shift));
      std::vector<float> values(expected.size());
      dequantize(type, std::span(moved).subspan(shift), values);
      EXPECT_EQ(std::memcmp(values.data(), expected.data(), values.size() * sizeof(float)), 0)
          << traits(type).name << " shifted by " << shift;
    }
  }
}

TEST(Dequantize, CopiesF32) {
  const std::array<float, 3> values = {1.0F, -0.0F, std::numeric_limits<float>::infinity()};
  std::array<float, 3> out{};
  dequantize(ElementType::f32, std::as_bytes(std::span(values)), out);
  EXPECT_EQ(std::memcmp(values.data(), out.data(), sizeof(out)), 0);
}

TEST(Dequantize, IgnoresBlocksBeyondTheOutput) {
  std::vector<std::byte> blocks(2 * sizeof(blocks::Q8_0));
  std::vector<float> out(32, 1.0F);
  dequantize(ElementType::q8_0, blocks, out);
  EXPECT_EQ(out, std::vector<float>(32, 0.0F));
}

TEST(Dequantize, AcceptsNoElements) {
  for (const ElementTypeTraits& type : element_types()) {
    if (!type.supported) continue;
    EXPECT_NO_THROW(dequantize(type.type, {}, {})) << type.name;
  }
}

TEST(Dequantize, RefusesTooFewBytes) {
  EXPECT_EQ(code_of(ElementType::f32, 7, 2), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(ElementType::q4_0, 17, 32), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(ElementType::q6_k, 2 * 210 - 1, 512), ErrorCode::invalid_argument);
}

TEST(Dequantize, RefusesPartOfABlock) {
  EXPECT_EQ(code_of(ElementType::q4_0, 100, 33), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(ElementType::q4_k, 1000, 32), ErrorCode::invalid_argument);
}

TEST(Dequantize, NamesAnUnsupportedType) {
  std::vector<std::byte> blocks(66);
  std::vector<float> out(256);
  try {
    dequantize(ElementType::iq2_xxs, blocks, out);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("IQ2_XXS"));
  }
}

TEST(Dequantize, TakesMxfp4ScalesFromTheEndsOfTheRange) {
  std::array<std::byte, 17> block{};
  block.fill(std::byte{0x71});  // codes 1 (0.5) and 7 (6.0)
  std::array<float, 32> out{};
  const auto with_exponent = [&](int e) {
    block[0] = static_cast<std::byte>(e);
    dequantize(ElementType::mxfp4, block, out);
  };
  with_exponent(0);
  EXPECT_EQ(out[0], 0x1p-128F);
  EXPECT_EQ(out[16], 0x1.8p-125F);
  with_exponent(1);
  EXPECT_EQ(out[0], 0x1p-127F);
  with_exponent(127);
  EXPECT_EQ(out[0], 0.5F);
  EXPECT_EQ(out[16], 6.0F);
  with_exponent(254);
  EXPECT_EQ(out[0], 0x1p126F);
  EXPECT_TRUE(std::isinf(out[16]));
  with_exponent(255);
  EXPECT_TRUE(std::isnan(out[0]));
}

TEST(BlockFormat, AgreesWithTheTypeTable) {
  for (const ElementTypeTraits& type : element_types()) {
    if (!type.supported || type.block_length == 1) continue;
    visit_block_format(type.type, [&]<typename Format>(Format) {
      EXPECT_EQ(sizeof(typename Format::Block), type.block_bytes) << type.name;
      EXPECT_EQ(static_cast<unsigned>(Format::Block::kLength), type.block_length) << type.name;
      EXPECT_EQ(Format::Block::kLength % Format::kGroup, 0) << type.name;
    });
  }
}

}  // namespace
}  // namespace edgerunner
