#include "tensor/element_type.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <string>

#include "edgerunner/error.h"

namespace edgerunner {
namespace {

using ::testing::HasSubstr;

TEST(ElementType, TableIsInOrderOfNumbersWithUniqueNames) {
  const auto types = element_types();
  EXPECT_TRUE(std::is_sorted(types.begin(), types.end(),
                             [](const auto& a, const auto& b) { return a.type < b.type; }));
  std::set<std::string_view> names;
  for (const auto& type : types) EXPECT_TRUE(names.insert(type.name).second) << type.name;
}

TEST(ElementType, IsFoundByNumberAndByName) {
  for (const auto& type : element_types()) {
    EXPECT_EQ(find_element_type(static_cast<std::uint32_t>(type.type)), &type);
    EXPECT_EQ(&traits(type.type), &type);
    EXPECT_EQ(element_type_from_name(type.name), type.type);
    std::string lower(type.name);
    for (char& c : lower) c = static_cast<char>(std::tolower(c));
    EXPECT_EQ(element_type_from_name(lower), type.type);
  }
}

TEST(ElementType, IsNotFoundWhereTheFormatDefinesNone) {
  for (const std::uint32_t id : {4U, 5U, 31U, 32U, 33U, 36U, 38U, 40U, 1000U, 0xFFFFFFFFU}) {
    EXPECT_EQ(find_element_type(id), nullptr) << id;
  }
  for (const std::string_view name : {"", "Q4", "Q4_", "Q4_00", "Q4_0 ", "float"}) {
    EXPECT_EQ(element_type_from_name(name), std::nullopt) << name;
  }
  EXPECT_THROW(traits(static_cast<ElementType>(99)), Error);
}

TEST(ElementType, CountsTheBytesOfARow) {
  EXPECT_EQ(row_bytes(ElementType::f32, 3), 12U);
  EXPECT_EQ(row_bytes(ElementType::q4_0, 64), 36U);
  EXPECT_EQ(row_bytes(ElementType::q6_k, 576 / 256 * 256), 420U);
  EXPECT_EQ(row_bytes(ElementType::mxfp4, 32), 17U);
  EXPECT_EQ(row_bytes(ElementType::q4_k, 0), 0U);
}

TEST(ElementType, RefusesARowThatEndsInsideABlock) {
  try {
    row_bytes(ElementType::q4_k, 576);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("576"));
    EXPECT_THAT(error.what(), HasSubstr("Q4_K"));
    EXPECT_THAT(error.what(), HasSubstr("256"));
  }
}

}  // namespace
}  // namespace edgerunner
