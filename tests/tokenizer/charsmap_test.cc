#include "tokenizer/charsmap.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "edgerunner/error.h"
#include "gguf/file.h"
#include "support/expect_error.h"
#include "tokenizer/vocabulary_file.h"

namespace edgerunner {
namespace {

constexpr std::uint32_t kLeafBit = 1U << 31;

// A character map built unit by unit; lies included.
struct Map {
  std::vector<std::uint32_t> units = std::vector<std::uint32_t>(256);
  std::string texts = std::string("x\0", 2);

  std::vector<std::uint8_t> bytes() const {
    std::vector<std::uint8_t> result;
    const auto put = [&](std::uint32_t number) {
      for (int shift = 0; shift < 32; shift += 8) {
        result.push_back(static_cast<std::uint8_t>(number >> shift));
      }
    };
    put(static_cast<std::uint32_t>(units.size() * 4));
    for (const std::uint32_t unit : units) put(unit);
    result.insert(result.end(), texts.begin(), texts.end());
    return result;
  }
};

constexpr std::uint32_t unit(char label, std::uint32_t offset, bool leaf) {
  return static_cast<std::uint8_t>(label) | (leaf ? 0x100U : 0U) | offset << 10;
}

// "a" becomes "x": the root's children are counted from 0, so that 'a' stands at 97, whose own are
// counted from 96: 97 ^ 1.
Map one_rule() {
  Map map;
  map.units['a'] = unit('a', 1, true);
  map.units[96] = kLeafBit;
  return map;
}

gguf::File file_of(const test::FileBuilder& built) {
  return gguf::File::view(built.bytes(), "vocabulary");
}

void expect_refused(const std::vector<std::uint8_t>& bytes, const std::string& part,
                    ErrorCode code = ErrorCode::invalid_file) {
  test::VocabularyFile vocabulary = test::unigram({{"a", -1}});
  vocabulary.charsmap = bytes;
  const test::FileBuilder built = vocabulary.build();
  test::expect_error(code, part, [&] { Charsmap::read(file_of(built)); });
}

void expect_refused(const Map& map, const std::string& part,
                    ErrorCode code = ErrorCode::invalid_file) {
  expect_refused(map.bytes(), part, code);
}

TEST(Charsmap, GivesTheRuleOfTheLongestKey) {
  Map map = one_rule();
  map.texts = std::string("x\0yy\0", 5);
  // 'b' after 'a' stands at 96 ^ 98 = 2, whose children are counted from 2 ^ 8 = 10.
  map.units[2] = unit('b', 8, true);
  map.units[10] = kLeafBit | 2;
  test::VocabularyFile vocabulary = test::unigram({{"a", -1}});
  vocabulary.charsmap = map.bytes();
  const test::FileBuilder built = vocabulary.build();
  const Charsmap charsmap = Charsmap::read(file_of(built));
  EXPECT_EQ(charsmap.find("ac").length, 1U);
  EXPECT_EQ(charsmap.find("ac").replacement, "x");
  EXPECT_EQ(charsmap.find("abc").length, 2U);
  EXPECT_EQ(charsmap.find("abc").replacement, "yy");
  EXPECT_EQ(charsmap.find("b").length, 0U);
  EXPECT_EQ(charsmap.find(std::string_view("\0", 1)).length, 0U);
  EXPECT_EQ(charsmap.find("").length, 0U);
}

TEST(Charsmap, HasNoRulesWhereTheFileHasNone) {
  const test::FileBuilder built = test::unigram({{"a", -1}}).build();
  EXPECT_EQ(Charsmap::read(file_of(built)).find("a").length, 0U);
}

TEST(Charsmap, RefusesSizesThatDoNotFit) {
  expect_refused(std::vector<std::uint8_t>{1, 2}, "precompiled_charsmap");
  const std::vector<std::uint8_t> good = one_rule().bytes();
  for (const std::uint32_t size : {0U, 4U, 1023U, 2048U, 0xFFFFFC00U, 0xFFFFFFFFU}) {
    std::vector<std::uint8_t> bytes = good;
    for (int i = 0; i < 4; ++i)
      bytes[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(size >> (8 * i));
    expect_refused(bytes, "precompiled_charsmap");
  }
  expect_refused(std::vector<std::uint8_t>(good.begin(), good.begin() + 1028),
                 "precompiled_charsmap");
}

TEST(Charsmap, RefusesUnitsAndTextsOutsideTheFile) {
  Map map = one_rule();
  map.units['a'] = unit('a', 256, true);
  expect_refused(map, "unit 97 points at unit 353");
  map = one_rule();
  map.units[0] = 0x1FFFFFU << 10 | 1U << 9;
  expect_refused(map, "unit 0 points");
  map = one_rule();
  map.units[96] = kLeafBit | 2;
  expect_refused(map, "byte 2 of the 2 bytes");
  map.units[96] = 0xFFFFFFFF;
  expect_refused(map, "bytes of texts");
  map = one_rule();
  map.texts.pop_back();
  expect_refused(map, "has no end");
  map.texts = std::string("\xFF\0", 2);
  expect_refused(map, "not UTF-8");
}

TEST(Charsmap, RefusesKeysAndTextsWithoutEnd) {
  Map map = one_rule();
  map.units['a'] = unit('a', 'a', false);  // its children are the root's
  expect_refused(map, "leads to itself");
  map = one_rule();
  map.texts.assign(301, 'x');
  map.texts.back() = '\0';
  expect_refused(map, "the limit is 256", ErrorCode::unsupported);
  // A chain of one unit a block: 300 bytes of 'a'.
  map = {};
  map.units.assign(256 * 302, 0);
  std::uint32_t at = 0;
  for (std::uint32_t block = 1; block <= 300; ++block) {
    const std::uint32_t children = block * 256;
    map.units[at] = (at == 0 ? 0 : 'a') | ((at ^ children) >> 8) << 10 | 1U << 9;
    at = (at ^ (at ^ children) >> 8 << 8) ^ 'a';
  }
  map.units[at] = 'a';
  expect_refused(map, "the limit is 256", ErrorCode::unsupported);
}

// What a changed map does to a text doesn't matter, so long as it is either refused or harmless.
TEST(Charsmap, SurvivesAnyChangeToARealOne) {
  const auto file = gguf::File::open(EDGERUNNER_TESTS_DIR "/tokenizer/vocabularies/t5.gguf");
  const auto numbers = file.get_ints("tokenizer.ggml.precompiled_charsmap").value();
  const std::vector<std::uint8_t> good(numbers.begin(), numbers.end());
  std::mt19937 random(7);
  const std::string text = "ｶﾞ e\u0301\u0323 ﷺ ＡＢ \xFF\x80 \u2003 Å①";
  int accepted = 0;
  for (int round = 0; round < 400; ++round) {
    test::VocabularyFile vocabulary = test::unigram({{"a", -1}});
    vocabulary.charsmap = good;
    for (int change = 0; change < 1 + round % 4; ++change) {
      (*vocabulary.charsmap)[random() % good.size()] = static_cast<std::uint8_t>(random());
    }
    try {
      const auto tokenizer = vocabulary.load();
      tokenizer->encode(text);
      ++accepted;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace edgerunner
