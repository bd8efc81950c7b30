#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "support/expect_error.h"
#include "tokenizer/vocabulary_file.h"

namespace edgerunner {
namespace {

using test::unigram;
using test::VocabularyFile;
using testing::ElementsAre;

const EncodeOptions kPlain{.add_special = false, .parse_special = false};
const EncodeOptions kParsed{.add_special = false, .parse_special = true};

constexpr TokenId kUnknownToken = 2;

// Without a space in front.
VocabularyFile bare(const std::vector<std::pair<std::string, float>>& pieces) {
  VocabularyFile file = unigram(pieces);
  file.flags = {{"add_space_prefix", false}};
  return file;
}

TEST(Unigram, TakesTheTokensOfTheHighestSum) {
  const VocabularyFile file = bare({{"a", -1}, {"b", -1}, {"c", -1}, {"ab", -3}, {"bc", -1.5F}});
  EXPECT_THAT(file.load()->encode("abc", kPlain), ElementsAre(file.id("a"), file.id("bc")));
  EXPECT_THAT(file.load()->encode("ab", kPlain), ElementsAre(file.id("a"), file.id("b")));
}

TEST(Unigram, TakesTheFirstFoundOfEqualSums) {
  const VocabularyFile file = bare({{"a", -1}, {"aa", -1}});
  // The longer token's sum is known as soon as its beginning is, the shorter one's later.
  EXPECT_THAT(file.load()->encode("aaa", kPlain), ElementsAre(file.id("a"), file.id("aa")));
}

TEST(Unigram, MakesOneUnknownTokenOfARunOfUnknownCharacters) {
  const VocabularyFile file = bare({{"a", -1}, {"xy", -30}});
  EXPECT_THAT(file.load()->encode("aéüa", kPlain),
              ElementsAre(file.id("a"), kUnknownToken, file.id("a")));
  // An unknown character costs 10 more than the least likely token.
  EXPECT_THAT(file.load()->encode("xy", kPlain), ElementsAre(file.id("xy")));
  EXPECT_EQ(file.load()->decode(file.load()->encode("aéa", kPlain)), "aa");
}

TEST(Unigram, WritesUnknownCharactersAsBytesWhereItHasThem) {
  VocabularyFile file = test::sentencepiece({"▁", "a"});
  file.model = "t5";
  const auto tokenizer = file.load();
  EXPECT_THAT(tokenizer->encode("aé", kPlain),
              ElementsAre(file.id("▁"), file.id("a"), file.id("<0xC3>"), file.id("<0xA9>")));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("aé a👍", kPlain)), "aé a👍");
  // A byte that isn't UTF-8 is U+FFFD to the model, as to SentencePiece.
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("a\xFF", kPlain)), "a\xEF\xBF\xBD");
}

TEST(Unigram, EndsWithEosUnlessTheMetadataForbidsIt) {
  VocabularyFile file = unigram({{"▁a", -1}});
  EXPECT_THAT(file.load()->encode("a"), ElementsAre(file.id("▁a"), 1));
  file.numbers.clear();  // by its name
  EXPECT_THAT(file.load()->encode("a"), ElementsAre(file.id("▁a"), 1));
  file.flags = {{"add_eos_token", false}};
  EXPECT_THAT(file.load()->encode("a"), ElementsAre(file.id("▁a")));
}

TEST(Unigram, KeepsOrRemovesSpacesAsTheMetadataSays) {
  VocabularyFile file = unigram({{"▁", -2}, {"▁a", -1}, {"a", -3}});
  EXPECT_THAT(file.load()->encode(" a ", kPlain),
              ElementsAre(file.id("▁"), file.id("▁a"), file.id("▁")));
  EXPECT_THAT(file.load()->encode(" ", kPlain), ElementsAre(file.id("▁"), file.id("▁")));
  file.flags = {{"remove_extra_whitespaces", true}};
  EXPECT_THAT(file.load()->encode("  a   a ", kPlain), ElementsAre(file.id("▁a"), file.id("▁a")));
  EXPECT_THAT(file.load()->encode(" ", kPlain), ElementsAre());
  EXPECT_THAT(file.load()->encode("", kPlain), ElementsAre());
}

TEST(Unigram, TakesTheTextBetweenSpecialTokensByItself) {
  VocabularyFile file = unigram({{"▁", -2}, {"▁a", -1}, {"a", -3}, {"<", -4}});
  file.add("<x>", test::kUserDefined);
  const auto tokenizer = file.load();
  EXPECT_THAT(tokenizer->encode("a</s>a<x>a", kParsed),
              ElementsAre(file.id("▁a"), 1, file.id("▁a"), file.id("<x>"), file.id("▁a")));
  EXPECT_THAT(tokenizer->encode("a<x>", kPlain), ElementsAre(file.id("▁a"), file.id("<x>")));
  EXPECT_THAT(
      tokenizer->encode("a<x></s>a", {.parse_special = true, .plain = std::vector<std::size_t>{4}})
          .size(),
      7U);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("a</s>a<x>a", kParsed), true), "a</s>a<x>a");
}

TEST(Unigram, NeverUsesTokensThatTextIsNotMadeOf) {
  VocabularyFile file = bare({{"a", -1}});
  file.add("aa", test::kUnused, 0).add("aaa", test::kControl, 0).add("\xFF", 1, 0);
  EXPECT_THAT(file.load()->encode("aaa", kPlain),
              ElementsAre(file.id("a"), file.id("a"), file.id("a")));
}

TEST(Unigram, RefusesScoresWithoutASum) {
  for (const float score :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    VocabularyFile file = unigram({{"a", score}});
    test::expect_error(ErrorCode::invalid_file, "tokenizer.ggml.scores", [&] { file.load(); });
  }
  VocabularyFile file = unigram({{"a", -1}});
  file.scores->pop_back();
  test::expect_error(ErrorCode::invalid_file, "tokenizer.ggml.scores", [&] { file.load(); });
  file = unigram({{std::string(1025, 'a'), -1}});
  test::expect_error(ErrorCode::unsupported, "token 3", [&] { file.load(); });
}

}  // namespace
}  // namespace edgerunner
