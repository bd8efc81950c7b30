#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gguf/file.h"
#include "support/shared_data.h"
#include "tokenizer/load.h"

// Texts and the ids that Hugging Face's library gives for them, for nine real vocabularies.

namespace edgerunner {
namespace {

class ReferenceCases : public testing::TestWithParam<const char*> {};

TEST_P(ReferenceCases, GiveTheIdsOfHuggingFace) {
  EDGERUNNER_REQUIRE_SHARED_DATA();
  const std::filesystem::path folder = test::shared_dir() / "tokenizers" / GetParam();
  const auto tokenizer = load_tokenizer(gguf::File::open(folder / "vocab.gguf"));
  std::ifstream stream(folder / "cases.json");
  const auto document = nlohmann::json::parse(stream);

  EXPECT_EQ(tokenizer->adds_bos(), document["add_bos"].get<bool>());
  if (!document["bos_id"].is_null()) {
    EXPECT_EQ(tokenizer->bos(), document["bos_id"].get<TokenId>());
  }
  int equal = 0;
  int total = 0;
  for (const auto& test_case : document["cases"]) {
    const auto text = test_case["text"].get<std::string>();
    const EncodeOptions options{.add_special = test_case["add_special"].get<bool>(),
                                .parse_special = test_case["parse_special"].get<bool>()};
    const auto wanted = test_case["ids"].get<std::vector<TokenId>>();
    const std::vector<TokenId> ids = tokenizer->encode(text, options);
    EXPECT_EQ(ids, wanted) << test_case["name"] << ": " << test_case["text"].dump().substr(0, 200);
    equal += ids == wanted ? 1 : 0;
    ++total;
  }
  fmt::print("{}: {} of {} texts have the reference's ids\n", GetParam(), equal, total);
  EXPECT_GT(total, 300);
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, ReferenceCases,
                         testing::Values("llama3.1", "qwen3", "deepseek-v3", "gpt2", "gemma3",
                                         "llama2", "mistral-v1", "mistral-v3", "tekken"),
                         [](const auto& name) {
                           std::string result = name.param;
                           std::erase_if(result, [](char c) { return c == '-' || c == '.'; });
                           return result;
                         });

}  // namespace
}  // namespace edgerunner
