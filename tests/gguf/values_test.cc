// Typed access: the right type, every wrong one, and absent keys.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <set>

#include "gguf/file.h"
#include "support/expect_error.h"
#include "support/file_builder.h"

namespace edgerunner {
namespace {

using gguf::File;
using gguf::ValueType;
using test::expect_error;
using test::FileBuilder;

constexpr ValueType kScalars[] = {ValueType::u8,  ValueType::i8,      ValueType::u16,
                                  ValueType::i16, ValueType::u32,     ValueType::i32,
                                  ValueType::f32, ValueType::boolean, ValueType::string,
                                  ValueType::u64, ValueType::i64,     ValueType::f64};

void append_one(FileBuilder& builder, ValueType type) {
  if (type == ValueType::string) {
    builder.string("x");
  } else if (type == ValueType::f32) {
    builder.number(1.0F);
  } else if (type == ValueType::f64) {
    builder.number(1.0);
  } else {  // an integer or boolean 1
    builder.raw(std::string(1, '\1') + std::string(gguf::value_bytes(type) - 1, '\0'));
  }
}

// One key of each scalar type, and of an array of each: "u8", "u8[]".
FileBuilder one_of_each() {
  FileBuilder builder;
  builder.header(0, 2 * std::size(kScalars));
  for (const ValueType type : kScalars) {
    append_one(builder.key(gguf::name(type), type), type);
    append_one(builder.array(std::string(gguf::name(type)) + "[]", type, 1), type);
  }
  return builder;
}

const std::set<std::string> kIntegers = {"u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64"};

std::set<std::string> with(std::set<std::string> names, const std::set<std::string>& more) {
  names.insert(more.begin(), more.end());
  return names;
}

std::set<std::string> arrays_of(const std::set<std::string>& types) {
  std::set<std::string> names;
  for (const std::string& type : types) names.insert(type + "[]");
  return names;
}

TEST(TypedAccess, AcceptsItsTypesAndNamesEveryOther) {
  const FileBuilder builder = one_of_each();
  const File file = File::view(builder.bytes(), "f.gguf");
  struct Accessor {
    std::string wanted;  // as the message says it
    std::set<std::string> accepted;
    std::function<void(std::string_view)> get;
  };
  const std::vector<Accessor> accessors = {
      {"an unsigned integer", kIntegers, [&](auto key) { EXPECT_EQ(file.get_uint(key), 1U); }},
      {"an unsigned integer", kIntegers, [&](auto key) { EXPECT_EQ(file.require_uint(key), 1U); }},
      {"an integer", kIntegers, [&](auto key) { EXPECT_EQ(file.get_int(key), 1); }},
      {"a number", with(kIntegers, {"f32", "f64"}),
       [&](auto key) { EXPECT_EQ(file.get_float(key), 1.0); }},
      {"a number", with(kIntegers, {"f32", "f64"}),
       [&](auto key) { EXPECT_EQ(file.require_float(key), 1.0); }},
      {"a boolean", {"boolean"}, [&](auto key) { EXPECT_EQ(file.get_bool(key), true); }},
      {"a string", {"string"}, [&](auto key) { EXPECT_EQ(file.get_string(key), "x"); }},
      {"a string", {"string"}, [&](auto key) { EXPECT_EQ(file.require_string(key), "x"); }},
      {"an array of strings",
       {"string[]"},
       [&](auto key) { EXPECT_THAT(*file.get_strings(key), ::testing::ElementsAre("x")); }},
      {"an array of integers", arrays_of(with(kIntegers, {"boolean"})),
       [&](auto key) { EXPECT_THAT(*file.get_ints(key), ::testing::ElementsAre(1)); }},
      {"an array of floats",
       {"f32[]", "f64[]"},
       [&](auto key) { EXPECT_THAT(*file.get_floats(key), ::testing::ElementsAre(1.0F)); }},
  };
  for (const gguf::Value& value : file.metadata()) {
    for (const Accessor& accessor : accessors) {
      if (accessor.accepted.contains(std::string(value.key))) {
        EXPECT_NO_THROW(accessor.get(value.key)) << value.key;
        continue;
      }
      const std::string message = "f.gguf: metadata key '" + std::string(value.key) + "' must be " +
                                  accessor.wanted + " but is " + gguf::type_name(value);
      expect_error(ErrorCode::invalid_file, message, [&] { accessor.get(value.key); });
    }
  }
}

TEST(TypedAccess, RefusesIntegersThatDoNotFit) {
  const FileBuilder builder = FileBuilder()
                                  .header(0, 4)
                                  .key("negative", ValueType::i8)
                                  .number(std::int8_t{-1})
                                  .key("large", ValueType::u64)
                                  .u64(~0ULL)
                                  .array("larges", ValueType::u64, 2)
                                  .u64(1)
                                  .u64(1ULL << 63)
                                  .key("largest", ValueType::u64)
                                  .u64(~0ULL >> 1);
  const File file = File::view(builder.bytes());
  expect_error(ErrorCode::invalid_file, "'negative'", [&] { (void)file.get_uint("negative"); });
  EXPECT_EQ(file.get_int("negative"), -1);
  EXPECT_EQ(file.get_uint("large"), ~0ULL);
  expect_error(ErrorCode::invalid_file, "'large'", [&] { (void)file.get_int("large"); });
  expect_error(ErrorCode::invalid_file, "'larges'", [&] { (void)file.get_ints("larges"); });
  EXPECT_EQ(file.get_int("largest"), std::numeric_limits<std::int64_t>::max());
}

TEST(TypedAccess, GivesNothingForAbsentKeysUnlessRequired) {
  const FileBuilder builder = FileBuilder().header(0, 1).u32_key("present", 1);
  const File file = File::view(builder.bytes(), "f.gguf");
  EXPECT_EQ(file.get_uint("absent"), std::nullopt);
  EXPECT_EQ(file.get_int("absent"), std::nullopt);
  EXPECT_EQ(file.get_float("absent"), std::nullopt);
  EXPECT_EQ(file.get_bool("absent"), std::nullopt);
  EXPECT_EQ(file.get_string("absent"), std::nullopt);
  EXPECT_FALSE(file.get_strings("absent").has_value());
  EXPECT_FALSE(file.get_ints("absent").has_value());
  EXPECT_FALSE(file.get_floats("absent").has_value());
  const std::string part = "f.gguf: metadata key 'absent' is missing";
  expect_error(ErrorCode::invalid_file, part, [&] { (void)file.require_uint("absent"); });
  expect_error(ErrorCode::invalid_file, part, [&] { (void)file.require_float("absent"); });
  expect_error(ErrorCode::invalid_file, part, [&] { (void)file.require_string("absent"); });
}

TEST(TypedAccess, GivesEveryElementAsANumber) {
  const FileBuilder builder = one_of_each();
  const File file = File::view(builder.bytes());
  for (const gguf::Value& value : file.metadata()) {
    EXPECT_EQ(gguf::number_at(value, 0).has_value(), value.element_type != ValueType::string)
        << value.key;
    EXPECT_FALSE(gguf::number_at(value, 1).has_value()) << value.key;
  }
  EXPECT_EQ(*gguf::number_at(*file.find("i16")), gguf::Number(std::int64_t{1}));
  EXPECT_EQ(*gguf::number_at(*file.find("f32[]")), gguf::Number(1.0));
  EXPECT_EQ(*gguf::number_at(*file.find("boolean")), gguf::Number(true));
  EXPECT_EQ(gguf::type_name(*file.find("i16[]")), "array of 1 i16");
}

}  // namespace
}  // namespace edgerunner
