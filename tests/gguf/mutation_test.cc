#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "edgerunner/error.h"
#include "gguf/file.h"
#include "support/file_builder.h"
#include "support/mutate.h"
#include "support/touch_file.h"

namespace edgerunner {
namespace {

using gguf::File;
using gguf::ValueType;
using test::FileBuilder;

// Every value type, ranks 1 to 4, plain and block types.
FileBuilder rich_file(std::size_t& header) {
  FileBuilder builder;
  builder.header(4, 12).text_key("general.architecture", "llama");
  builder.u32_key("general.alignment", 32).key("b", ValueType::boolean).raw("\1");
  builder.key("f", ValueType::f32).number(0.5F).key("d", ValueType::f64).number(0.5);
  builder.key("h", ValueType::i16).number(std::int16_t{-5}).key("l", ValueType::i64).u64(~0ULL);
  builder.array("words", ValueType::string, 3).string("one").string("").string("three");
  builder.array("bytes", ValueType::u8, 5).raw("12345");
  builder.array("flags", ValueType::boolean, 2).raw(std::string_view("\0\1", 2));
  builder.array("floats", ValueType::f32, 2).number(1.0F).number(2.0F);
  builder.array("ints", ValueType::i32, 2).u32(1).u32(~0U);
  builder.tensor("a", {4, 2}, 0, 0).tensor("b", {32, 2}, 8, 32);
  builder.tensor("c", {256, 1, 1}, 12, 128).tensor("d", {2, 2, 2, 2}, 1, 288);
  builder.pad();
  header = builder.size();
  builder.data(288 + 32);
  return builder;
}

TEST(Mutation, OpensOrRefusesTwentyThousandMutatedFiles) {
  std::size_t header = 0;
  const FileBuilder builder = rich_file(header);
  ASSERT_NO_THROW(test::touch(File::view(builder.bytes())));
  test::MutationRandom random(20260101);
  std::map<bool, int> outcomes;
  std::uint64_t total = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::vector<std::byte> bytes = test::mutate(builder.bytes(), header, random);
    try {
      total += test::touch(File::view(bytes));
      ++outcomes[true];
    } catch (const Error& error) {
      ASSERT_TRUE(error.code() == ErrorCode::invalid_file || error.code() == ErrorCode::unsupported)
          << "file " << i << ": " << error.what();
      ++outcomes[false];
    }
  }
  std::printf("20000 mutated files: %d opened, %d refused\n", outcomes[true], outcomes[false]);
  // The run must reach both what lies behind the checks and the checks.
  EXPECT_GT(outcomes[true], 1000);
  EXPECT_GT(outcomes[false], 1000);
  EXPECT_NE(total, 0U);
}

}  // namespace
}  // namespace edgerunner
