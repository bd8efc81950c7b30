#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gguf/file.h"
#include "tokenizer/load.h"

// Small unigram and WordPiece vocabularies, and what SentencePiece's and Hugging Face's libraries
// make of texts with them: vocabularies/make_vocabularies.py.

namespace edgerunner {
namespace {

std::string text_of(const nlohmann::json& test_case) {
  if (test_case.contains("text")) return test_case["text"].get<std::string>();
  const auto digits = test_case["hex"].get<std::string>();  // bytes that aren't UTF-8
  std::string text;
  for (std::size_t at = 0; at < digits.size(); at += 2) {
    text += static_cast<char>(std::stoi(digits.substr(at, 2), nullptr, 16));
  }
  return text;
}

std::string streamed(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, bool special) {
  StreamDecoder decoder(tokenizer, special);
  std::string text;
  for (const TokenId id : ids) text += decoder.push(id);
  return text + decoder.finish();
}

class SmallVocabulary : public testing::TestWithParam<const char*> {
 protected:
  SmallVocabulary()
      : stem_(std::filesystem::path(EDGERUNNER_TESTS_DIR) / "tokenizer/vocabularies" / GetParam()),
        tokenizer_(load_tokenizer(gguf::File::open(stem_.string() + ".gguf"))) {
    std::ifstream stream(stem_.string() + ".json");
    cases_ = nlohmann::json::parse(stream)["cases"];
  }

  std::filesystem::path stem_;
  std::unique_ptr<Tokenizer> tokenizer_;
  nlohmann::json cases_;
};

TEST_P(SmallVocabulary, GivesTheReferencesIds) {
  for (const auto& test_case : cases_) {
    const EncodeOptions options{.add_special = test_case.value("add_special", false),
                                .parse_special = test_case.value("parse_special", false)};
    EXPECT_EQ(tokenizer_->encode(text_of(test_case), options),
              test_case["ids"].get<std::vector<TokenId>>())
        << test_case.dump().substr(0, 300);
  }
  fmt::print("{}: {} texts\n", GetParam(), cases_.size());
  EXPECT_GT(cases_.size(), 300U);
}

TEST_P(SmallVocabulary, GivesTheReferencesText) {
  std::size_t compared = 0;
  for (const auto& test_case : cases_) {
    if (!test_case.contains("decoded")) continue;
    const auto ids = test_case["ids"].get<std::vector<TokenId>>();
    EXPECT_EQ(tokenizer_->decode(ids), test_case["decoded"].get<std::string>())
        << test_case.dump().substr(0, 300);
    ++compared;
  }
  fmt::print("{}: {} texts\n", GetParam(), compared);
  EXPECT_GT(compared, 70U);
}

TEST_P(SmallVocabulary, StreamsWhatItDecodes) {
  for (const auto& test_case : cases_) {
    const auto ids = test_case["ids"].get<std::vector<TokenId>>();
    for (const bool special : {false, true}) {
      EXPECT_EQ(streamed(*tokenizer_, ids, special), tokenizer_->decode(ids, special))
          << test_case.dump().substr(0, 300);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, SmallVocabulary,
                         testing::Values("t5", "unigram-bytes", "bert-uncased", "bert-cased"),
                         [](const auto& name) {
                           std::string result = name.param;
                           std::erase(result, '-');
                           return result;
                         });

}  // namespace
}  // namespace edgerunner
