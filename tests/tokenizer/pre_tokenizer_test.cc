#include "tokenizer/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace edgerunner {
namespace {

// splits.json holds what Hugging Face's library makes of some awkward texts.
TEST(PreTokenizer, SplitsAsHuggingFaceDoes) {
  std::ifstream stream(EDGERUNNER_TESTS_DIR "/tokenizer/splits.json");
  const auto document = nlohmann::json::parse(stream);
  const auto texts = document["texts"].get<std::vector<std::string>>();
  EXPECT_EQ(document["splits"].size(), 10U);
  for (const auto& [name, splits] : document["splits"].items()) {
    const auto pre_tokenizer = PreTokenizer::named(name);
    ASSERT_TRUE(pre_tokenizer) << name;
    PreTokenizer::Scratch scratch;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      pre_tokenizer->split(texts[i], scratch);
      std::vector<std::string> pieces;
      for (const Expression::Range& piece : scratch.pieces) {
        pieces.push_back(texts[i].substr(piece.begin, piece.end - piece.begin));
      }
      EXPECT_EQ(pieces, splits[i].get<std::vector<std::string>>()) << name << ": " << texts[i];
    }
  }
}

TEST(PreTokenizer, KnowsOnlyTheNamesItHasExpressionsFor) {
  EXPECT_FALSE(PreTokenizer::named("jabberwocky"));
  EXPECT_FALSE(PreTokenizer::named(""));
  EXPECT_TRUE(PreTokenizer::named("llama3"));
}

}  // namespace
}  // namespace edgerunner
