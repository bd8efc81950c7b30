#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tokenizer/vocabulary_file.h"

namespace edgerunner {
namespace {

using test::sentencepiece;
using test::VocabularyFile;
using testing::ElementsAre;

const EncodeOptions kPlain{.add_special = false, .parse_special = false};
const EncodeOptions kParsed{.add_special = false, .parse_special = true};

constexpr TokenId byte_token(unsigned char byte) { return 3 + byte; }

TEST(SentencePiece, MergesTheHighestScoreFirst) {
  const VocabularyFile file = sentencepiece({"bc", "ab", "abc", "▁", "a", "b", "c"});
  const auto tokenizer = file.load();
  // "bc" scores more than "ab", and "a" with "bc" makes "abc".
  EXPECT_THAT(tokenizer->encode("abc", kPlain), ElementsAre(file.id("▁"), file.id("abc")));
  EXPECT_THAT(tokenizer->encode("aab", kPlain),
              ElementsAre(file.id("▁"), file.id("a"), file.id("ab")));
}

TEST(SentencePiece, PutsASpaceInFrontOfEachStretchOfPlainText) {
  VocabularyFile file = sentencepiece({"▁a", "▁", "a", "b"});
  auto tokenizer = file.load();
  EXPECT_THAT(tokenizer->encode("a", kPlain), ElementsAre(file.id("▁a")));
  EXPECT_THAT(tokenizer->encode("</s>a<s><s> b", kParsed),
              ElementsAre(2, file.id("▁a"), 1, 1, file.id("▁"), file.id("▁"), file.id("b")));
  EXPECT_THAT(tokenizer->encode("", kPlain), ElementsAre());
  file.flags = {{"add_space_prefix", false}};
  tokenizer = file.load();
  EXPECT_THAT(tokenizer->encode("a</s>a", kParsed), ElementsAre(file.id("a"), 2, file.id("a")));
}

TEST(SentencePiece, LeavesTokensOverPlainBytesAlone) {
  const VocabularyFile file = sentencepiece({"▁", "a", "<", "s", ">"});
  const auto tokenizer = file.load();
  const std::vector<std::size_t> plain = {5};  // the second "<" of "a <s><s>" stands there
  EXPECT_THAT(
      tokenizer->encode("a <s><s>", {.add_special = false, .parse_special = true, .plain = plain}),
      ElementsAre(file.id("▁"), file.id("a"), file.id("▁"), 1, file.id("▁"), file.id("<"),
                  file.id("s"), file.id(">")));
}

TEST(SentencePiece, AddsBosUnlessTheMetadataForbidsIt) {
  VocabularyFile file = sentencepiece({"▁a", "▁", "a"});
  EXPECT_THAT(file.load()->encode("a"), ElementsAre(1, file.id("▁a")));
  EXPECT_THAT(file.load()->encode(""), ElementsAre(1));
  file.flags = {{"add_bos_token", false}, {"add_eos_token", true}};
  EXPECT_THAT(file.load()->encode("a"), ElementsAre(file.id("▁a"), 2));
}

TEST(SentencePiece, FallsBackToBytes) {
  const VocabularyFile file = sentencepiece({"▁", "a"});
  const auto tokenizer = file.load();
  EXPECT_THAT(tokenizer->encode("a\xC3\xA9\xFF", kPlain),
              ElementsAre(file.id("▁"), file.id("a"), byte_token(0xC3), byte_token(0xA9),
                          byte_token(0xFF)));
  EXPECT_EQ(tokenizer->token_bytes(byte_token(0xC3)), "\xC3");
}

TEST(SentencePiece, WithoutByteTokensARunOfUnknownCharactersIsOneUnknownToken) {
  VocabularyFile file = sentencepiece({"▁", "a"});
  file.tokens[byte_token(7)] = "<no byte>";
  file.types[byte_token(7)] = 1;
  EXPECT_THAT(file.load()->encode("axyza", kPlain),
              ElementsAre(file.id("▁"), file.id("a"), 0, file.id("a")));
}

TEST(SentencePiece, MatchesUserDefinedTokensAlwaysAndOthersWhenAsked) {
  VocabularyFile file = sentencepiece({"▁", "<", "/", "s", ">", "u", "n", "k"});
  file.add("  ", test::kUserDefined).add("   ", test::kUserDefined).add("<s>s", test::kUserDefined);
  file.flags = {{"add_space_prefix", false}};
  const auto tokenizer = file.load();
  EXPECT_THAT(tokenizer->encode("s    s", kPlain),
              ElementsAre(file.id("s"), file.id("   "), file.id("▁"), file.id("s")));
  EXPECT_THAT(tokenizer->encode("<s>s", kParsed), ElementsAre(file.id("<s>s")));
  EXPECT_THAT(tokenizer->encode("<unk>", kParsed), ElementsAre(0));
  EXPECT_THAT(tokenizer->encode("<s>", kPlain),
              ElementsAre(file.id("<"), file.id("s"), file.id(">")));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("s    s", kPlain)), "s    s");
}

TEST(SentencePiece, GivesBackEveryByteStringOfTwoBytes) {
  const auto tokenizer = sentencepiece({"▁a", "▁▁", "▁", "a", "b", "é", "ab"}).load();
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string text = {static_cast<char>(first), static_cast<char>(second), 'b'};
      ASSERT_EQ(tokenizer->decode(tokenizer->encode(text, kPlain)), text) << first << second;
    }
  }
}

TEST(SentencePiece, DecodesWithoutTheSpacesItPutInFront) {
  const VocabularyFile file = sentencepiece({"▁a", "▁", "a"});
  const auto tokenizer = file.load();
  for (const char* text : {"a", " a", "  a ", "a a", "", " "}) {
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
  for (const char* text : {"a</s>a", "<s> a</s></s>  a"}) {
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, kParsed), true), text);
  }
  EXPECT_EQ(tokenizer->token_bytes(file.id("▁a")), " a");
}

}  // namespace
}  // namespace edgerunner
