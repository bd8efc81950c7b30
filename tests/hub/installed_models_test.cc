#include "hub/installed_models.h"

#include <gmock/gmock.h>

#include <fstream>

#include "support/temporary_folder.h"

namespace edgerunner::hub {
namespace {

using ::testing::ElementsAre;

class InstalledModelsTest : public ::testing::Test {
 protected:
  void put(const std::string& file) const {
    const auto path = folder_ / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "12345";
  }
  std::vector<InstalledModel> models() const { return installed_models(folder_.path()); }

  test::TemporaryFolder folder_;
};

TEST_F(InstalledModelsTest, AreFoundWithShardsAndParts) {
  put("mine.gguf");
  put("hf/Qwen/Qwen3-0.6B-GGUF/Qwen3-0.6B-Q8_0.gguf");
  put("hf/o/r/a-00001-of-00002.gguf");
  put("hf/o/r/a-00002-of-00002.gguf");
  put("hf/o/r/b-00001-of-00002.gguf");
  put("hf/o/r/b-00002-of-00002.gguf.%22x%22.part");
  put("url/host/c.gguf.part");
  put("notes.txt");
  const auto list = models();
  std::vector<std::string> text;
  for (const InstalledModel& model : list) {
    text.push_back(model.name + (model.complete ? " " : " incomplete ") +
                   std::to_string(model.bytes));
    EXPECT_TRUE(model.path.is_absolute());
  }
  EXPECT_THAT(text, ElementsAre("hf:o/r/a-00001-of-00002.gguf 10",
                                "hf:o/r/b-00001-of-00002.gguf incomplete 10", "mine.gguf 5",
                                "qwen3-0.6b 5", "url/host/c.gguf incomplete 5"));
}

TEST_F(InstalledModelsTest, AreNoneWithoutAFolder) {
  EXPECT_TRUE(installed_models(folder_ / "none").empty());
}

TEST_F(InstalledModelsTest, AreRemovedWithTheFoldersThatBecomeEmpty) {
  put("hf/o/r/a-00001-of-00002.gguf");
  put("hf/o/r/a-00002-of-00002.gguf.part");
  put("hf/o/z/b.gguf");
  remove_model(models().front(), folder_.path());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "hf/o/r"));
  ASSERT_EQ(models().size(), 1U);
  remove_model(models().front(), folder_.path());
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

}  // namespace
}  // namespace edgerunner::hub
