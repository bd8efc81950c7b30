#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace edgerunner {

// What stands at the front of some bytes, as the WHATWG decoding standard divides them.
struct Utf8Unit {
  enum class Kind : std::uint8_t {
    character,   // a whole character
    invalid,     // bytes that can't begin or continue a character: one U+FFFD
    incomplete,  // the bytes end inside what may yet become a character
  };
  Kind kind;
  std::uint8_t length;  // 1 to 4
};

// `bytes` must not be empty.
Utf8Unit first_utf8_unit(std::string_view bytes);

// How many bytes at the front are whole characters.
std::size_t valid_utf8_prefix(std::string_view bytes);

// The code point of a whole character of `length` bytes.
char32_t utf8_code_point(const char* character, std::size_t length);

void append_utf8(std::string& text, char32_t code_point);

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace edgerunner
