#include "tokenizer/utf8.h"

#include <cstring>

namespace edgerunner {

Utf8Unit first_utf8_unit(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {Utf8Unit::Kind::character, 1};

  // The second byte's range keeps out overlong forms, surrogates and what lies above U+10FFFF.
  unsigned low = 0x80;
  unsigned high = 0xBF;
  std::uint8_t length = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {Utf8Unit::Kind::invalid, 1};
  }
  for (std::uint8_t i = 1; i < length; ++i) {
    if (i == bytes.size()) return {Utf8Unit::Kind::incomplete, i};
    if (byte(i) < low || byte(i) > high) return {Utf8Unit::Kind::invalid, i};
    low = 0x80;
    high = 0xBF;
  }
  return {Utf8Unit::Kind::character, length};
}

std::size_t valid_utf8_prefix(std::string_view bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    if (at + 8 <= bytes.size()) {  // eight ASCII bytes at a time
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at, sizeof word);
      if ((word & 0x8080808080808080U) == 0) {
        at += 8;
        continue;
      }
    }
    const Utf8Unit unit = first_utf8_unit(bytes.substr(at));
    if (unit.kind != Utf8Unit::Kind::character) break;
    at += unit.length;
  }
  return at;
}

char32_t utf8_code_point(const char* character, std::size_t length) {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(character[i]));
  };
  switch (length) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
    case 3:
      return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    default:
      return (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 |
             (byte(3) & 0x3F);
  }
}

void append_utf8(std::string& text, char32_t code_point) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3F));
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

}  // namespace edgerunner
