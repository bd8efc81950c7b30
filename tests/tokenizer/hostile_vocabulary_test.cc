#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "support/expect_error.h"
#include "tokenizer/vocabulary_file.h"

namespace edgerunner {
namespace {

using test::byte_level;
using test::sentencepiece;
using test::VocabularyFile;

void expect_refused(ErrorCode code, const std::string& part, const VocabularyFile& file) {
  test::expect_error(code, part, [&] { file.load(); });
}

void expect_invalid(const std::string& key, const VocabularyFile& file) {
  expect_refused(ErrorCode::invalid_file, "tokenizer.ggml." + key, file);
}

TEST(HostileVocabulary, UnsupportedKindsAreNamed) {
  VocabularyFile file = byte_level("gpt-2", {});
  file.pre = "jabberwocky";
  expect_refused(ErrorCode::unsupported, "jabberwocky", file);
  file.model = "rwkv";
  expect_refused(ErrorCode::unsupported, "rwkv", file);
  file.model = "no_vocab";
  expect_refused(ErrorCode::unsupported, "no tokenizer", file);
  file.model.reset();
  expect_refused(ErrorCode::unsupported, "no tokenizer", file);
}

TEST(HostileVocabulary, ListsMustHaveOneEntryAToken) {
  VocabularyFile file = byte_level("gpt-2", {});
  file.types.pop_back();
  expect_invalid("token_type", file);

  file = sentencepiece({"a"});
  file.scores->pop_back();
  expect_invalid("scores", file);
  file.scores.reset();
  expect_invalid("scores", file);

  file = byte_level("gpt-2", {});
  file.merges.reset();
  expect_invalid("merges", file);

  file.tokens.clear();
  file.types.clear();
  expect_invalid("tokens", file);
}

TEST(HostileVocabulary, TypesAndScoresMustHaveAMeaning) {
  VocabularyFile file = byte_level("gpt-2", {});
  for (const int type : {-1, 7, std::numeric_limits<int>::min()}) {
    file.types[3] = type;
    expect_invalid("token_type", file);
  }
  file = sentencepiece({"a"});
  file.scores->back() = std::numeric_limits<float>::quiet_NaN();
  expect_invalid("scores", file);
}

TEST(HostileVocabulary, TokensMustDifferAndNotBeEmpty) {
  VocabularyFile file = byte_level("gpt-2", {});
  file.add("");
  expect_invalid("tokens", file);
  file.tokens.back() = "a";
  expect_invalid("tokens", file);
  // Padding is never looked for, so it may be anything.
  file.types.back() = test::kUnused;
  file.add("", test::kUnused);
  EXPECT_EQ(file.load()->find("a"), 'a');
}

TEST(HostileVocabulary, IdsMustLieInTheVocabulary) {
  for (const char* key :
       {"bos_token_id", "eos_token_id", "unknown_token_id", "eot_token_id", "eom_token_id"}) {
    VocabularyFile file = byte_level("gpt-2", {});
    for (const std::uint32_t id : {256U, 0x7FFFFFFFU, 0xFFFFFFFEU}) {
      file.numbers = {{key, id}};
      expect_invalid(key, file);
    }
    file.numbers = {{key, 0xFFFFFFFFU}};  // how converters write that there is none
    EXPECT_NO_THROW(file.load());
  }
}

TEST(HostileVocabulary, BosMustExistWhereItIsAskedFor) {
  VocabularyFile file = byte_level("gpt-2", {});
  file.flags = {{"add_bos_token", true}};
  expect_invalid("bos_token_id", file);
  file.flags = {{"add_eos_token", true}};
  expect_invalid("eos_token_id", file);
}

TEST(HostileVocabulary, MergesMustBePairsOfTokensThatMakeAToken) {
  for (const char* merge : {"", " ", "a", "ab", "a ", " a", "a zz", "zz a", "a c", "a b c"}) {
    VocabularyFile file = byte_level("gpt-2", {"a b"});
    file.merges->push_back(merge);
    expect_invalid("merges", file);
  }
}

TEST(HostileVocabulary, ATokenTooLongToSplitIsRefused) {
  VocabularyFile file = sentencepiece({std::string(1025, 'a')});
  expect_refused(ErrorCode::unsupported, "token 259", file);
  file = sentencepiece({std::string(1024, 'a'), "a"});
  EXPECT_NO_THROW(file.load());
}

TEST(HostileVocabulary, TokensThatAreNotUtf8AreHarmless) {
  const auto tokenizer = sentencepiece({"\xFF\xFE", "a\x80", "\xE2\x96", "a", "▁"}).load();
  for (const char* text : {"\xFF\xFE", "a\x80", "\xE2\x96\x61"}) {
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
}

TEST(HostileVocabulary, EveryTokenMayBeSpecial) {
  VocabularyFile file = byte_level("gpt-2", {"a b"});
  for (const int type : {test::kControl, test::kUserDefined, test::kUnknown, test::kUnused}) {
    for (auto& each : file.types) each = type;
    const auto tokenizer = file.load();
    EXPECT_NO_THROW(tokenizer->encode("ab \xFF", {.add_special = true, .parse_special = true}));
  }
}

}  // namespace
}  // namespace edgerunner
