#include "tokenizer/normalize.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "tokenizer/utf8.h"

namespace edgerunner {
namespace {

std::string nfc_of_utf8proc(const std::string& text) {
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> result(
      utf8proc_NFC(reinterpret_cast<const utf8proc_uint8_t*>(text.c_str())), std::free);
  return reinterpret_cast<const char*>(result.get());
}

TEST(Normalize, AgreesWithUtf8procOnEveryCodePointBetweenMarks) {
  for (char32_t code_point = 1; code_point < 0x110000; ++code_point) {
    if (code_point >= 0xD800 && code_point <= 0xDFFF) continue;
    std::string text = "a";
    for (const char32_t part : {code_point, char32_t{0x301}, code_point, char32_t{0x323}}) {
      append_utf8(text, part);
    }
    ASSERT_EQ(to_nfc(text), nfc_of_utf8proc(text)) << std::hex << static_cast<unsigned>(code_point);
  }
}

TEST(Normalize, OrdersAndComposes) {
  EXPECT_EQ(to_nfc("e\xCC\x81"), "\xC3\xA9");                      // e + acute
  EXPECT_EQ(to_nfc("a\xCC\x81\xCC\xA3"), "\xE1\xBA\xA1\xCC\x81");  // dot below goes first
  EXPECT_EQ(to_nfc("\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB"), "\xED\x95\x9C");  // Hangul
  EXPECT_EQ(to_nfc(std::string("\0a", 2)), std::string("\0a", 2));
  EXPECT_EQ(to_nfc(""), "");
}

TEST(Normalize, TheQuickCheckNeverPassesWhatWouldChange) {
  EXPECT_TRUE(is_surely_nfc("plain, caf\xC3\xA9"));
  for (char32_t code_point = 1; code_point < 0x110000; ++code_point) {
    if (code_point >= 0xD800 && code_point <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, code_point);
    if (is_surely_nfc(text)) {
      ASSERT_EQ(to_nfc(text), text);
    }
  }
}

}  // namespace
}  // namespace edgerunner
