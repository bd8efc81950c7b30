#include "hub/model_source.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

#include "edgerunner/error.h"
#include "expect_error_naming.h"
#include "hub/known_models.h"
#include "hub/models_folder.h"
#include "hub/resolve_model.h"
#include "hub/sha256.h"
#include "support/temporary_folder.h"

namespace edgerunner::hub {
namespace {

using ::testing::HasSubstr;

class ModelSourceTest : public ::testing::Test {
 protected:
  ModelSourceTest() {
    ::unsetenv("HF_ENDPOINT");
    ::setenv("EDGERUNNER_CACHE", folder_.path().c_str(), 1);
  }
  ~ModelSourceTest() override {
    ::unsetenv("HF_ENDPOINT");
    ::unsetenv("EDGERUNNER_CACHE");
  }

  std::string put(const std::string& file) const {
    const auto path = folder_ / ("models/" + file);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "model";
    return path.string();
  }

  test::TemporaryFolder folder_;
};

TEST_F(ModelSourceTest, FindsAFileOfTheHub) {
  const auto source = find_source("hf:owner/repo/sub/file name.gguf");
  ASSERT_TRUE(source);
  EXPECT_EQ(source->url, "https://huggingface.co/owner/repo/resolve/main/sub/file%20name.gguf");
  EXPECT_EQ(source->file, "hf/owner/repo/sub/file name.gguf");
  EXPECT_TRUE(source->hub);
  EXPECT_EQ(find_source("hf:owner/repo@v2/f.gguf")->url,
            "https://huggingface.co/owner/repo/resolve/v2/f.gguf");
  ::setenv("HF_ENDPOINT", "http://mirror:8000/", 1);
  EXPECT_EQ(find_source("hf:o/r/f.gguf")->url, "http://mirror:8000/o/r/resolve/main/f.gguf");
}

TEST_F(ModelSourceTest, TakesThePagesOfTheHubForItsFiles) {
  for (const char* url : {"https://huggingface.co/o/r/resolve/main/f.gguf?download=true",
                          "https://huggingface.co/o/r/blob/main/f.gguf"}) {
    EXPECT_EQ(find_source(url)->file, "hf/o/r/f.gguf") << url;
    EXPECT_TRUE(find_source(url)->hub);
  }
  EXPECT_EQ(find_source("https://huggingface.co/o/r/resolve/v2/f.gguf")->file, "hf/o/r@v2/f.gguf");
}

TEST_F(ModelSourceTest, KeepsOtherUrlsApart) {
  const auto source = find_source("http://user:secret@host:80/a/f.gguf#part");
  EXPECT_EQ(source->file, "url/host:80/a/f.gguf");
  EXPECT_EQ(source->url, "http://user:secret@host:80/a/f.gguf");
  EXPECT_FALSE(source->hub);
  const auto one = find_source("https://host/get?id=1");
  EXPECT_THAT(one->file.string(), ::testing::MatchesRegex("url/host/[0-9a-f]+/get.gguf"));
  EXPECT_NE(one->file, find_source("https://host/get?id=2")->file);
  EXPECT_EQ(one->url, "https://host/get?id=1");
}

TEST_F(ModelSourceTest, RefusesNamesThatCannotBeRight) {
  for (const char* name :
       {"hf:owner/file.gguf", "hf:owner/repo/file.bin", "hf:owner/repo/../../../x.gguf",
        "hf:/repo/x.gguf", "hf:o/@main/x.gguf", "https://host", "https://host/../x.gguf"}) {
    test::expect_error_naming(ErrorCode::invalid_argument, {name}, [&] { find_source(name); });
  }
  EXPECT_EQ(find_source("model.gguf"), std::nullopt);
  EXPECT_EQ(find_source("./hf:x"), std::nullopt);
}

TEST_F(ModelSourceTest, NamesAllShardsOfASplitFile) {
  auto source = *find_source("https://host/a-00002-of-00003.gguf?key=-00002-of-00003.gguf");
  source.sha256 = "sum";
  const auto shards = shards_of(source);
  ASSERT_EQ(shards.size(), 3U);
  EXPECT_EQ(shards[0].url, "https://host/a-00001-of-00003.gguf?key=-00002-of-00003.gguf");
  EXPECT_EQ(shards[2].file.filename(), "a-00003-of-00003.gguf");
  EXPECT_EQ(shards[1].sha256, "sum");
  EXPECT_EQ(shards[2].sha256, "");
  for (const char* whole : {"hf:o/r/a.gguf", "hf:o/r/a-00004-of-00003.gguf", "hf:o/r/a-1-of-3.gguf",
                            "hf:o/r/-00000-of-00000.gguf"}) {
    EXPECT_EQ(shards_of(*find_source(whole)).size(), 1U) << whole;
  }
}

TEST_F(ModelSourceTest, EveryKnownModelHasASourceAndAGoodChecksumOrNone) {
  for (const KnownModel& known : known_models()) {
    const auto source = find_source(known.name);
    ASSERT_TRUE(source) << known.name;
    EXPECT_EQ(name_of_file(source->file), known.name);
    EXPECT_TRUE(known.sha256.empty() || is_sha256(known.sha256)) << known.name;
  }
}

TEST_F(ModelSourceTest, AnArgumentIsAPathWhereThatExists) {
  const std::string fetched = put("hf/o/r/f.gguf");
  EXPECT_EQ(resolve_model("hf:o/r/f.gguf"), fetched);
  EXPECT_EQ(resolve_model(fetched), fetched);
  EXPECT_EQ(resolve_model("hf/o/r/f"), fetched);
  EXPECT_EQ(resolve_model("/no/such/file"), "/no/such/file");
  EXPECT_EQ(resolve_model("../models/hf/o/r/f"), "../models/hf/o/r/f");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path());
  std::ofstream("qwen3-0.6b") << "mine";
  EXPECT_EQ(resolve_model("qwen3-0.6b"), "qwen3-0.6b");
  std::filesystem::remove("qwen3-0.6b");
  test::expect_error_naming(ErrorCode::io, {"qwen3-0.6b", "edgerunner pull qwen3-0.6b"},
                            [] { resolve_model("qwen3-0.6b"); });
  std::filesystem::current_path(before);
}

TEST_F(ModelSourceTest, TheFolderFollowsTheEnvironment) {
  EXPECT_EQ(models_folder(), folder_ / "models");
  ::unsetenv("EDGERUNNER_CACHE");
  ::setenv("XDG_CACHE_HOME", "/cache", 1);
  EXPECT_EQ(models_folder(), "/cache/edgerunner/models");
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  ::setenv("HOME", "/home/somebody", 1);
  EXPECT_EQ(models_folder(), "/home/somebody/.cache/edgerunner/models");
  ::unsetenv("XDG_CACHE_HOME");
}

TEST(Sha256Test, AgreesWithThePublishedExamples) {  // FIPS 180-2, B.1 and B.2
  EXPECT_EQ(sha256_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

}  // namespace
}  // namespace edgerunner::hub
