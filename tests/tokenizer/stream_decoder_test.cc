#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tokenizer/utf8.h"
#include "tokenizer/vocabulary_file.h"

namespace edgerunner {
namespace {

constexpr std::string_view kBad = "\xEF\xBF\xBD";

// Of a vocabulary of single bytes.
std::string decode_bytes(std::string_view bytes) {
  const auto tokenizer = test::byte_level("gpt-2", {}).load();
  StreamDecoder decoder(*tokenizer);
  std::string text;
  for (const char byte : bytes) {
    const std::string piece = decoder.push(static_cast<unsigned char>(byte));
    EXPECT_EQ(valid_utf8_prefix(piece), piece.size());
    text += piece;
  }
  return text + decoder.finish();
}

TEST(StreamDecoder, EmitsACharacterWhenItIsWhole) {
  const auto tokenizer = test::byte_level("gpt-2", {}).load();
  StreamDecoder decoder(*tokenizer);
  EXPECT_EQ(decoder.push(0xF0), "");
  EXPECT_EQ(decoder.push(0x9F), "");
  EXPECT_EQ(decoder.push(0x98), "");
  EXPECT_EQ(decoder.push(0x80), "\xF0\x9F\x98\x80");
  EXPECT_EQ(decoder.push('a'), "a");
  EXPECT_EQ(decoder.finish(), "");
}

// The examples of the Unicode standard's chapter 3 (tables 3-8 to 3-11), which the WHATWG decoder
// follows: one U+FFFD for each maximal subpart.
TEST(StreamDecoder, ReplacesInvalidBytesAsWhatwgDoes) {
  const std::string bad(kBad);
  const auto times = [&](int n) {
    std::string text;
    for (int i = 0; i < n; ++i) text += bad;
    return text;
  };
  EXPECT_EQ(decode_bytes("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), times(8) + "A");
  EXPECT_EQ(decode_bytes("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), times(8) + "A");
  EXPECT_EQ(decode_bytes("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), times(5) + "A" + times(2) + "B");
  EXPECT_EQ(decode_bytes("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), times(4) + "A");
  EXPECT_EQ(decode_bytes("\xF0\x9F\x98"), bad);
  EXPECT_EQ(decode_bytes("a\xE2\x82"), "a" + bad);
}

TEST(StreamDecoder, GivesTheTextOfDecode) {
  const auto tokenizer = test::sentencepiece({"▁a", "▁", "a", "é"}).load();
  for (const bool special : {false, true}) {
    for (const char* text : {" a é", "a</s>a", "</s> a", "a\xF0\x9F\x98\x80", ""}) {
      const auto ids = tokenizer->encode(text, {.add_special = true, .parse_special = true});
      StreamDecoder decoder(*tokenizer, special);
      std::string streamed;
      for (const TokenId id : ids) streamed += decoder.push(id);
      EXPECT_EQ(streamed + decoder.finish(), tokenizer->decode(ids, special));
    }
  }
}

}  // namespace
}  // namespace edgerunner
