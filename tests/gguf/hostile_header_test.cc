// Files whose header or metadata lies.
#include <gtest/gtest.h>

#include "gguf/file.h"
#include "support/expect_error.h"
#include "support/file_builder.h"

namespace edgerunner {
namespace {

using gguf::File;
using gguf::ValueType;
using test::expect_error;
using test::FileBuilder;

constexpr std::uint64_t kHugeCounts[] = {1ULL << 31, (1ULL << 42) + 1, 1ULL << 61, 1ULL << 63,
                                         ~0ULL};

void expect_refused(ErrorCode code, const std::string& part, const FileBuilder& builder) {
  expect_error(code, part, [&] { File::view(builder.bytes(), "hostile.gguf"); });
  expect_error(code, "hostile.gguf: ", [&] { File::view(builder.bytes(), "hostile.gguf"); });
}

void expect_invalid(const std::string& part, const FileBuilder& builder) {
  expect_refused(ErrorCode::invalid_file, part, builder);
}

TEST(HostileHeader, RefusesAnEmptyFile) { expect_invalid("empty", FileBuilder()); }

TEST(HostileHeader, RefusesWhatIsNotGguf) {
  expect_invalid("not a GGUF file", FileBuilder().raw("G"));
  expect_invalid("not a GGUF file", FileBuilder().raw("GGU"));
  expect_invalid("not a GGUF file", FileBuilder().raw("GGML\1\0\0\0and so on"));
  expect_invalid("not a GGUF file", FileBuilder().raw("Dear reader,\nthis is a text.\n"));
}

TEST(HostileHeader, RefusesOtherVersionsByNumber) {
  for (const std::uint32_t version : {0U, 1U, 4U, 5U, 0x10000U, ~0U}) {
    expect_refused(ErrorCode::unsupported,
                   version == 0x10000U ? "big-endian" : "version " + std::to_string(version),
                   FileBuilder().header(0, 0, version));
  }
}

TEST(HostileHeader, RefusesBigEndianFiles) {
  expect_refused(ErrorCode::unsupported, "big-endian", FileBuilder().header(0, 0, 3U << 24));
  expect_refused(ErrorCode::unsupported, "big-endian", FileBuilder().header(0, 0, 2U << 24));
}

TEST(HostileHeader, RefusesCountsThatTheFileCannotHold) {
  for (const std::uint64_t count : kHugeCounts) {
    expect_invalid(std::to_string(count) + " tensors", FileBuilder().header(count, 0).data(100));
    expect_invalid(std::to_string(count) + " metadata keys",
                   FileBuilder().header(0, count).data(100));
  }
  // 14 and 33 bytes are the least that a key and a tensor take
  expect_invalid("2 metadata keys", FileBuilder().header(0, 2).data(27));
  expect_invalid("2 tensors", FileBuilder().header(2, 0).data(65));
}

TEST(HostileHeader, RefusesLengthsOfStringsPastTheEnd) {
  for (const std::uint64_t length : kHugeCounts) {
    expect_invalid("metadata key needs", FileBuilder().header(0, 1).u64(length).data(100));
    expect_invalid("key 'k'",
                   FileBuilder().header(0, 1).key("k", ValueType::string).u64(length).data(100));
    expect_invalid(
        "key 'k'",
        FileBuilder().header(0, 1).array("k", ValueType::string, 1).u64(length).data(100));
  }
}

TEST(HostileHeader, RefusesLengthsOfArraysPastTheEnd) {
  for (std::uint32_t type = 0; type <= 12; ++type) {
    if (type == 9) continue;
    for (const std::uint64_t count : kHugeCounts) {
      expect_invalid("key 'k'", FileBuilder()
                                    .header(0, 1)
                                    .array("k", static_cast<ValueType>(type), count)
                                    .raw(std::string(64, '\0')));
    }
  }
}

TEST(HostileHeader, RefusesNestedArrays) {
  FileBuilder builder;
  builder.header(0, 1).array("k", ValueType::array, 1);
  for (int depth = 0; depth < 1000; ++depth) builder.u32(9).u64(1);
  expect_refused(ErrorCode::unsupported, "'k' is an array of arrays", builder);
}

TEST(HostileHeader, RefusesUnknownValueTypesByNumber) {
  for (const std::uint32_t type : {13U, 255U, ~0U}) {
    const std::string part = "'k' has the unknown value type " + std::to_string(type);
    expect_refused(ErrorCode::unsupported, part,
                   FileBuilder().header(0, 1).key("k", static_cast<ValueType>(type)).u64(0));
    expect_refused(ErrorCode::unsupported, part,
                   FileBuilder().header(0, 1).array("k", static_cast<ValueType>(type), 1).u64(0));
  }
}

TEST(HostileHeader, RefusesBooleansOtherThanZeroAndOne) {
  expect_invalid("boolean", FileBuilder().header(0, 1).key("flag", ValueType::boolean).raw("\2"));
  expect_invalid("boolean", FileBuilder()
                                .header(0, 1)
                                .array("flags", ValueType::boolean, 3)
                                .raw(std::string_view("\0\1\xFF", 3)));
}

TEST(HostileHeader, RefusesKeysThatAreEmptyTooLongOrUnprintable) {
  expect_invalid("metadata key is empty", FileBuilder().header(0, 1).u32_key("", 1));
  expect_invalid("65536 bytes", FileBuilder().header(0, 1).u32_key(std::string(65536, 'k'), 1));
  expect_invalid("printable", FileBuilder().header(0, 1).u32_key("a\nb", 1));
  expect_invalid("printable", FileBuilder().header(0, 1).u32_key(std::string("a\0b", 3), 1));
  expect_invalid("printable", FileBuilder().header(0, 1).u32_key("a\xFF", 1));
  expect_invalid("printable", FileBuilder().header(0, 1).u32_key("\xED\xA0\x80", 1));
  const FileBuilder longest = FileBuilder().header(0, 1).u32_key(std::string(65535, 'k'), 1);
  EXPECT_EQ(File::view(longest.bytes()).get_uint(std::string(65535, 'k')), 1U);
}

TEST(HostileHeader, RefusesDuplicateKeys) {
  expect_invalid(
      "'twice' occurs twice",
      FileBuilder().header(0, 3).u32_key("twice", 1).u32_key("once", 1).text_key("twice", "other"));
}

TEST(HostileHeader, RefusesAlignmentsThatAreNone) {
  for (const std::uint32_t alignment : {0U, 1U, 4U, 24U, 33U, 48U, 0x80000000U, 0xFFFFFFFFU}) {
    expect_invalid("general.alignment is " + std::to_string(alignment),
                   FileBuilder().header(0, 1).u32_key("general.alignment", alignment));
  }
  expect_invalid("general.alignment",
                 FileBuilder().header(0, 1).text_key("general.alignment", "32"));
  expect_invalid("general.alignment",
                 FileBuilder().header(0, 1).key("general.alignment", ValueType::f32).number(32.0F));
  expect_invalid("general.alignment",
                 FileBuilder().header(0, 1).array("general.alignment", ValueType::u32, 1).u32(32));
}

TEST(HostileHeader, RefusesAnAlignmentThatLeavesNoRoomForData) {
  expect_invalid("tensor 't'", FileBuilder()
                                   .header(1, 1)
                                   .u32_key("general.alignment", 1U << 30)
                                   .tensor("t", {4}, 0, 0)
                                   .pad()
                                   .data(1000));
}

}  // namespace
}  // namespace edgerunner
