#include "gguf/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/file_builder.h"
#include "support/shared_data.h"

namespace edgerunner {
namespace {

using gguf::File;
using gguf::ValueType;
using test::FileBuilder;
using ::testing::ElementsAre;

FileBuilder small_file(std::uint32_t version = 3) {
  FileBuilder builder;
  builder.header(2, 3, version).text_key("general.architecture", "llama").u32_key("n", 7);
  builder.array("words", ValueType::string, 2).string("one").string("");
  builder.tensor("a", {4, 2}, 0, 0).tensor("b", {32}, 8, 32).pad().data(32 + 34);
  return builder;
}

TEST(File, ReadsMetadataAndTensorsInPlace) {
  for (const std::uint32_t version : {2U, 3U}) {
    const FileBuilder builder = small_file(version);
    const File file = File::view(builder.bytes(), "small");
    EXPECT_EQ(file.name(), "small");
    EXPECT_EQ(file.version(), version);
    EXPECT_EQ(file.alignment(), 32U);
    EXPECT_EQ(file.shard_count(), 1U);
    EXPECT_EQ(file.bytes(), builder.size());
    EXPECT_EQ(file.require_string("general.architecture"), "llama");
    EXPECT_EQ(file.require_uint("n"), 7U);
    EXPECT_THAT(*file.get_strings("words"), ElementsAre("one", ""));
    ASSERT_EQ(file.tensors().size(), 2U);
    const gguf::Tensor& b = *file.find_tensor("b");
    EXPECT_EQ(b.type, ElementType::q8_0);
    EXPECT_EQ(b.rank, 1U);
    EXPECT_THAT(b.shape, ElementsAre(32, 1, 1, 1));
    EXPECT_EQ(b.data.size(), 34U);
    EXPECT_EQ(b.data.data(), builder.bytes().data() + builder.size() - 34);
    EXPECT_EQ(file.find_tensor("c"), nullptr);
    EXPECT_EQ(file.find("m"), nullptr);
  }
}

TEST(File, OpensEveryFixtureAndVocabulary) {
  EDGERUNNER_REQUIRE_SHARED_DATA();
  std::size_t opened = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(test::shared_dir())) {
    if (entry.path().extension() != ".gguf") continue;
    const File file = File::open(entry.path());
    EXPECT_FALSE(file.require_string("general.architecture").empty()) << entry.path();
    ++opened;
  }
  EXPECT_GT(opened, 40U);
}

}  // namespace
}  // namespace edgerunner
