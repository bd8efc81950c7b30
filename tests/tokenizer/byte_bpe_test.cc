#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/expect_error.h"
#include "tokenizer/vocabulary_file.h"

namespace edgerunner {
namespace {

using test::byte_level;
using test::VocabularyFile;
using testing::ElementsAre;

const EncodeOptions kPlain{.add_special = false, .parse_special = false};
const EncodeOptions kParsed{.add_special = false, .parse_special = true};

TEST(ByteBpe, MergesTheLowestRankFirstAndTheLeftmostOfEqualOnes) {
  const VocabularyFile file = byte_level("gpt-2", {"b c", "a b", "a a", "aa a"});
  const auto tokenizer = file.load();
  EXPECT_THAT(tokenizer->encode("abc", kPlain), ElementsAre('a', file.id("bc")));
  EXPECT_THAT(tokenizer->encode("abx", kPlain), ElementsAre(file.id("ab"), 'x'));
  EXPECT_THAT(tokenizer->encode("aaa", kPlain), ElementsAre(file.id("aaa")));
  EXPECT_THAT(tokenizer->encode("aaaaa", kPlain), ElementsAre(file.id("aa"), file.id("aaa")));
}

TEST(ByteBpe, NeverMergesAcrossWords) {
  const VocabularyFile file = byte_level("gpt-2", {"a Ġ", "Ġ b"});
  EXPECT_THAT(file.load()->encode("a b", kPlain), ElementsAre('a', file.id("Ġb")));
}

TEST(ByteBpe, TakesAWholeWordAsItIsWhereThePreTokenizerSaysSo) {
  VocabularyFile file = byte_level("llama-bpe", {"b c"});
  file.add("abc");
  EXPECT_THAT(file.load()->encode("abc", kPlain), ElementsAre(file.id("abc")));
  file.pre = "qwen2";
  EXPECT_THAT(file.load()->encode("abc", kPlain), ElementsAre('a', file.id("bc")));
}

TEST(ByteBpe, NormalizesForQwenOnly) {
  const std::string decomposed = "e\xCC\x81";  // e, U+0301
  const std::string composed = "\xC3\xA9";     // U+00E9
  VocabularyFile file = byte_level("qwen2", {});
  auto tokenizer = file.load();
  EXPECT_EQ(tokenizer->encode(decomposed, kPlain), tokenizer->encode(composed, kPlain));
  file.pre = "llama-bpe";
  tokenizer = file.load();
  EXPECT_NE(tokenizer->encode(decomposed, kPlain), tokenizer->encode(composed, kPlain));
}

TEST(ByteBpe, GivesBackEveryByteStringOfTwoBytes) {
  for (const char* pre : {"gpt-2", "deepseek-v3"}) {
    const auto tokenizer = byte_level(pre, {"a b", "Ã ©"}).load();
    for (int first = 0; first < 256; ++first) {
      for (int second = 0; second < 256; ++second) {
        const std::string text = {'a', static_cast<char>(first), static_cast<char>(second), 'b'};
        ASSERT_EQ(tokenizer->decode(tokenizer->encode(text, kPlain)), text) << first << second;
      }
    }
  }
}

TEST(ByteBpe, EncodesTextAroundInvalidBytesAsIfItEndedThere) {
  const VocabularyFile file = byte_level("gpt-2", {"a b", "Ġ Ġ"});
  const auto tokenizer = file.load();
  EXPECT_THAT(tokenizer->encode("ab\xFF"
                                "ab",
                                kPlain),
              ElementsAre(file.id("ab"), 0xFF, file.id("ab")));
  // A character that breaks off is one byte token a byte.
  EXPECT_THAT(tokenizer->encode("\xE2\x82", kPlain), ElementsAre(0xE2, 0x82));
}

TEST(ByteBpe, TakesTextByLength) {
  const auto tokenizer = byte_level("gpt-2", {}).load();
  EXPECT_THAT(tokenizer->encode(std::string_view("a\0b", 3), kPlain), ElementsAre('a', 0, 'b'));
  EXPECT_THAT(tokenizer->encode("", kPlain), ElementsAre());
}

VocabularyFile with_special_tokens() {
  VocabularyFile file = byte_level("gpt-2", {});
  file.add("<|a|>", test::kControl).add("<|a|>b", test::kControl).add("<u>", test::kUserDefined);
  file.add("[PAD]", test::kUnused);
  return file;
}

TEST(ByteBpe, MatchesTheLongestSpecialTokenOnlyWhenAsked) {
  const VocabularyFile file = with_special_tokens();
  const auto tokenizer = file.load();
  EXPECT_THAT(tokenizer->encode("x<|a|>b<|a|>", kParsed),
              ElementsAre('x', file.id("<|a|>b"), file.id("<|a|>")));
  EXPECT_THAT(tokenizer->encode("<|a|>", kPlain), ElementsAre('<', '|', 'a', '|', '>'));
  EXPECT_THAT(tokenizer->encode("<u><|a|", kPlain),
              ElementsAre(file.id("<u>"), '<', '|', 'a', '|'));
  EXPECT_THAT(tokenizer->encode("[PAD]", kParsed), ElementsAre('[', 'P', 'A', 'D', ']'));
}

TEST(ByteBpe, LeavesTokensOverPlainBytesAlone) {
  const VocabularyFile file = with_special_tokens();
  const auto tokenizer = file.load();
  const std::vector<std::size_t> plain = {5, 12};
  EXPECT_THAT(tokenizer->encode("<|a|><|a|>b<u>",
                                {.add_special = false, .parse_special = true, .plain = plain}),
              ElementsAre(file.id("<|a|>"), '<', '|', 'a', '|', '>', 'b', '<', 'u', '>'));
}

TEST(ByteBpe, LeavesControlTokensOutOfDecodedTextUnlessAsked) {
  const VocabularyFile file = with_special_tokens();
  const auto tokenizer = file.load();
  const std::vector<TokenId> ids = tokenizer->encode("x<|a|><u>", kParsed);
  EXPECT_EQ(tokenizer->decode(ids), "x<u>");
  EXPECT_EQ(tokenizer->decode(ids, true), "x<|a|><u>");
  EXPECT_TRUE(tokenizer->is_control(file.id("<|a|>")));
  EXPECT_FALSE(tokenizer->is_control(file.id("<u>")));
  EXPECT_EQ(tokenizer->token_bytes(0xE9), "\xE9");
}

TEST(ByteBpe, RefusesIdsOutsideTheVocabulary) {
  const auto tokenizer = byte_level("gpt-2", {}).load();
  for (const TokenId token : {-1, 256}) {
    test::expect_error(ErrorCode::invalid_argument, "outside the vocabulary",
                       [&] { tokenizer->token_bytes(token); });
    EXPECT_FALSE(tokenizer->is_control(token));
    EXPECT_FALSE(tokenizer->is_end_of_generation(token));
  }
}

TEST(ByteBpe, AddsBosAndEosAsTheMetadataSays) {
  VocabularyFile file = byte_level("gpt-2", {});
  file.add("<s>", test::kControl).add("</s>", test::kControl);
  file.numbers = {{"bos_token_id", 256}, {"eos_token_id", 257}};
  EXPECT_THAT(file.load()->encode("a"), ElementsAre('a'));
  file.flags = {{"add_bos_token", true}, {"add_eos_token", true}};
  EXPECT_THAT(file.load()->encode("a"), ElementsAre(256, 'a', 257));
  EXPECT_THAT(file.load()->encode("a", kPlain), ElementsAre('a'));
  // Llama 3's files say nothing, and want it.
  file.pre = "llama-bpe";
  file.flags = {};
  EXPECT_THAT(file.load()->encode("a"), ElementsAre(256, 'a'));
  file.flags = {{"add_bos_token", false}};
  EXPECT_THAT(file.load()->encode("a"), ElementsAre('a'));
}

TEST(ByteBpe, KnowsTheEndOfGenerationByIdAndByName) {
  VocabularyFile file = byte_level("gpt-2", {});
  for (const char* name : {"<|im_end|>", "<e>", "<t>", "<m>", "<|im_start|>"}) {
    file.add(name, test::kControl);
  }
  file.add("<|endoftext|>");  // of that name, but ordinary text
  file.numbers = {{"eos_token_id", static_cast<std::uint32_t>(file.id("<e>"))},
                  {"eot_token_id", static_cast<std::uint32_t>(file.id("<t>"))},
                  {"eom_token_id", static_cast<std::uint32_t>(file.id("<m>"))}};
  const auto tokenizer = file.load();
  EXPECT_EQ(tokenizer->eos(), file.id("<e>"));
  EXPECT_EQ(tokenizer->bos(), kNoToken);
  for (const char* name : {"<|im_end|>", "<e>", "<t>", "<m>"}) {
    EXPECT_TRUE(tokenizer->is_end_of_generation(file.id(name))) << name;
  }
  for (const char* name : {"<|im_start|>", "<|endoftext|>", "a"}) {
    EXPECT_FALSE(tokenizer->is_end_of_generation(file.id(name))) << name;
  }
}

}  // namespace
}  // namespace edgerunner
