#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/expect_error.h"
#include "tokenizer/bert_words.h"
#include "tokenizer/vocabulary_file.h"

namespace edgerunner {
namespace {

using test::VocabularyFile;
using test::wordpiece;
using testing::ElementsAre;

const EncodeOptions kPlain{.add_special = false, .parse_special = false};
const EncodeOptions kParsed{.add_special = false, .parse_special = true};

constexpr TokenId kUnknownToken = 1;

TEST(BertWords, DivideAtSpacesPunctuationAndChineseCharacters) {
  const auto words = [](std::string_view text) { return bert_words(text, BertCase::cased); };
  EXPECT_EQ(words("It's\t2+2."), "It ' s 2 + 2 . ");
  EXPECT_EQ(words("a狐狸b"), "a 狐  狸 b");
  EXPECT_EQ(words("\xC2\xA0"
                  "a\xE3\x80\x80"
                  "b"),
            " a b");
  EXPECT_EQ(words("“€”"), " “ € ” ");
}

TEST(BertWords, LeaveOutWhatHasNoForm) {
  const std::string text(
      "a\0b\x07"
      "c\xE2\x80\x8B"
      "d\xEF\xBF\xBD"
      "e\xFF"
      "f\xE2\x82",
      17);
  EXPECT_EQ(bert_words(text, BertCase::cased), "abcdef");
}

TEST(BertWords, AreSmallAndWithoutAccentsWhereUncased) {
  EXPECT_EQ(bert_words("ÉcoleÅ e\u0301 İ", BertCase::uncased), "ecolea e i");
  EXPECT_EQ(bert_words("ÉcoleÅ", BertCase::cased), "ÉcoleÅ");
  EXPECT_EQ(bert_words("한", BertCase::uncased), "\u1112\u1161\u11AB");
}

TEST(WordPiece, TakesTheLongestTokenEachTime) {
  const VocabularyFile file = wordpiece({"▁un", "▁unwrit", "writ", "ten", "t", "e", "▁ten"});
  const auto tokenizer = file.load();
  EXPECT_THAT(tokenizer->encode("unwritten ten", kPlain),
              ElementsAre(file.id("▁unwrit"), file.id("ten"), file.id("▁ten")));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("unwritten ten")), "unwritten ten");
}

TEST(WordPiece, GivesOneUnknownTokenForAWordThatItCannotSpell) {
  const VocabularyFile file = wordpiece({"▁un", "writ", "▁a"});
  const auto tokenizer = file.load();
  EXPECT_THAT(tokenizer->encode("a unwritten a", kPlain),
              ElementsAre(file.id("▁a"), kUnknownToken, file.id("▁a")));
  const auto ids = tokenizer->encode("a unwritten a");
  EXPECT_EQ(tokenizer->decode(ids), "a a");
  EXPECT_EQ(tokenizer->decode(ids, true), "[CLS]a [UNK] a[SEP]");
}

TEST(WordPiece, GivesUpOnWordsOfMoreThanAHundredCharacters) {
  const VocabularyFile file = wordpiece({"▁é", "é"});
  const auto repeated = [](int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += "é";
    return text;
  };
  VocabularyFile cased = file;  // so that accents stay
  cased.add("▁A");
  EXPECT_EQ(cased.load()->encode(repeated(100), kPlain).size(), 100U);
  EXPECT_THAT(cased.load()->encode(repeated(101), kPlain), ElementsAre(kUnknownToken));
}

TEST(WordPiece, IsUncasedWhereTheVocabularyHasNoCapitals) {
  const VocabularyFile small = wordpiece({"▁ab", "▁cafe"});
  EXPECT_THAT(small.load()->encode("AB Café", kPlain),
              ElementsAre(small.id("▁ab"), small.id("▁cafe")));
  const VocabularyFile cased = wordpiece({"▁ab", "▁AB", "▁Café"});
  EXPECT_THAT(cased.load()->encode("AB Café", kPlain),
              ElementsAre(cased.id("▁AB"), cased.id("▁Café")));
}

TEST(WordPiece, PutsClassAndSeparatorRoundATextAsTheMetadataSays) {
  VocabularyFile file = wordpiece({"▁a"});
  EXPECT_THAT(file.load()->encode("a"), ElementsAre(2, 4, 3));  // by their names
  file.numbers = {{"cls_token_id", 3}, {"seperator_token_id", 2}};
  EXPECT_THAT(file.load()->encode("a"), ElementsAre(3, 4, 2));
  file.numbers = {{"bos_token_id", 2}, {"eos_token_id", 3}};
  file.flags = {{"add_bos_token", false}, {"add_eos_token", false}};
  EXPECT_THAT(file.load()->encode("a"), ElementsAre(4));
  EXPECT_THAT(file.load()->encode("a[SEP]a", kParsed), ElementsAre(4, 3, 4));
}

TEST(WordPiece, MarksAttachToTheWordBeforeThem) {
  const VocabularyFile file = wordpiece({"▁a", "▁.", "▁,", "▁-"});
  const auto tokenizer = file.load();
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("a, a - a.")), "a, a - a.");
}

TEST(WordPiece, TellsTheMarkOfAWordFromTheSameCharacterInText) {
  const VocabularyFile file = wordpiece({"▁a", "▁▁", "▁"});
  EXPECT_THAT(file.load()->encode("▁ ▁▁ a▁", kPlain),
              ElementsAre(file.id("▁▁"), file.id("▁▁"), file.id("▁"), file.id("▁a"), file.id("▁")));
  EXPECT_THAT(file.load()->encode("a▁a", kPlain), ElementsAre(kUnknownToken));
  EXPECT_EQ(file.load()->decode(file.load()->encode("a ▁▁", kPlain)), "a ▁▁");
}

TEST(WordPiece, RefusesAVocabularyInAnotherSpelling) {
  const VocabularyFile file = wordpiece({"a", "##b"});
  test::expect_error(ErrorCode::invalid_file, "tokenizer.ggml.tokens", [&] { file.load(); });
}

}  // namespace
}  // namespace edgerunner
