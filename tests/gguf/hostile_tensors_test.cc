// Files whose tensor descriptions lie.
#include <gtest/gtest.h>

#include "gguf/file.h"
#include "support/expect_error.h"
#include "support/file_builder.h"

namespace edgerunner {
namespace {

using gguf::File;
using test::expect_error;
using test::FileBuilder;

constexpr std::uint32_t kF32 = 0;
constexpr std::uint32_t kQ8_0 = 8;

void expect_refused(ErrorCode code, const std::string& part, const FileBuilder& builder) {
  expect_error(code, part, [&] { File::view(builder.bytes(), "hostile.gguf"); });
  expect_error(code, "hostile.gguf: ", [&] { File::view(builder.bytes(), "hostile.gguf"); });
}

void expect_invalid(const std::string& part, const FileBuilder& builder) {
  expect_refused(ErrorCode::invalid_file, part, builder);
}

// A file with one tensor and 256 bytes of data.
FileBuilder with_tensor(const std::vector<std::uint64_t>& shape, std::uint32_t type = kF32,
                        std::uint64_t offset = 0) {
  return FileBuilder().header(1, 0).tensor("weird", shape, type, offset).pad().data(256);
}

TEST(HostileTensors, RefusesRanksOtherThanOneToFour) {
  expect_invalid("'weird' has 0 dimensions", with_tensor({}));
  expect_invalid("'weird' has 5 dimensions", with_tensor({1, 1, 1, 1, 1}));
  expect_invalid("'weird' has 9 dimensions", with_tensor({1, 1, 1, 1, 1, 1, 1, 1, 1}));
  for (const std::uint32_t rank : {1U << 31, ~0U}) {
    expect_invalid(std::to_string(rank) + " dimensions",
                   FileBuilder().header(1, 0).string("t").u32(rank).data(256));
  }
}

TEST(HostileTensors, RefusesDimensionsThatTheFileCannotHold) {
  for (const std::uint64_t dimension : {0ULL, 1ULL << 31, (1ULL << 42) + 1, 1ULL << 63, ~0ULL}) {
    for (const std::uint32_t type : {kF32, kQ8_0}) {
      for (std::size_t rank = 1; rank <= 4; ++rank) {
        for (std::size_t place = 0; place < rank; ++place) {
          std::vector<std::uint64_t> shape(rank, 1);
          shape[0] = 32;
          shape[place] = dimension;
          expect_invalid("'weird'", with_tensor(shape, type));
        }
      }
    }
  }
}

TEST(HostileTensors, RefusesProductsThatOverflow) {
  const std::uint64_t half = 1ULL << 32;
  expect_invalid("more elements than any file", with_tensor({half, half}));      // 2^64
  expect_invalid("more elements than any file", with_tensor({half, half / 2}));  // 4 * 2^63
  expect_invalid("more elements than any file", with_tensor({half, half, half, half}));
  expect_invalid("more elements than any file", with_tensor({1ULL << 62, 1}));  // 4 * 2^62
  expect_invalid("more elements than any file", with_tensor({half, half, 1}, kQ8_0));
  // 3 * 0x5555555555555556 is 2 modulo 2^64: two elements to an unchecked product
  expect_invalid("more elements than any file", with_tensor({3, 0x5555555555555556ULL}));
}

TEST(HostileTensors, RefusesRowsThatAreNotWholeBlocks) {
  expect_invalid("multiple of the block length 32", with_tensor({33}, kQ8_0));
  expect_invalid("multiple of the block length 32", with_tensor({16, 2}, kQ8_0));
  expect_invalid("multiple of the block length 256", with_tensor({128}, 12));
}

TEST(HostileTensors, RefusesUnknownElementTypesByNumber) {
  for (const std::uint32_t type : {4U, 5U, 31U, 33U, 1000U, ~0U}) {
    expect_refused(ErrorCode::unsupported,
                   "'weird' has the unknown element type " + std::to_string(type),
                   with_tensor({32}, type));
  }
}

TEST(HostileTensors, RefusesMisalignedOffsets) {
  for (const std::uint64_t offset : {1ULL, 4ULL, 16ULL, 31ULL, ~0ULL}) {
    expect_invalid("multiple of the alignment 32", with_tensor({4}, kF32, offset));
  }
}

TEST(HostileTensors, RefusesDataPastTheEndOfTheFile) {
  EXPECT_NO_THROW(File::view(with_tensor({64}).bytes()));
  expect_invalid("'weird' F32 [65]", with_tensor({65}));
  EXPECT_NO_THROW(File::view(with_tensor({8}, kF32, 224).bytes()));
  expect_invalid("offset 224", with_tensor({9}, kF32, 224));
  for (const std::uint64_t offset : {256ULL, 1ULL << 31, 1ULL << 63, ~0ULL - 31}) {
    expect_invalid("offset " + std::to_string(offset), with_tensor({1}, kF32, offset));
  }
}

TEST(HostileTensors, RefusesTensorsThatShareBytes) {
  const auto two = [](std::uint64_t a, std::uint64_t b) {
    return FileBuilder()
        .header(2, 0)
        .tensor("a", {16}, kF32, a)
        .tensor("b", {16}, kF32, b)
        .pad()
        .data(256);
  };
  EXPECT_NO_THROW(File::view(two(0, 64).bytes()));
  EXPECT_NO_THROW(File::view(two(192, 0).bytes()));  // any order, with a gap
  expect_invalid("'a' and 'b' share bytes at offset 32", two(0, 32));
  expect_invalid("'b' and 'a' share bytes at offset 64", two(64, 32));
  expect_invalid("share bytes at offset 64", two(64, 64));
}

TEST(HostileTensors, RefusesDuplicateNames) {
  expect_invalid("tensor 'twice' occurs twice", FileBuilder()
                                                    .header(2, 0)
                                                    .tensor("twice", {8}, kF32, 0)
                                                    .tensor("twice", {8}, kF32, 32)
                                                    .pad()
                                                    .data(64));
}

TEST(HostileTensors, RefusesNamesThatAreEmptyTooLongOrUnprintable) {
  const auto named = [](const std::string& name) {
    return FileBuilder().header(1, 0).tensor(name, {8}, kF32, 0).pad().data(32);
  };
  expect_invalid("name is empty", named(""));
  expect_invalid("65 bytes", named(std::string(65, 't')));
  expect_invalid("printable", named("a\x1B[2J"));
  expect_invalid("printable", named("\xC3"));
  EXPECT_NO_THROW(File::view(named(std::string(64, 't')).bytes()));
  for (const std::uint64_t length : {1ULL << 31, 1ULL << 63, ~0ULL}) {
    expect_invalid("name needs", FileBuilder().header(1, 0).u64(length).data(64));
  }
}

}  // namespace
}  // namespace edgerunner
