#include "tokenizer/byte_alphabet.h"

#include <array>

#include "tokenizer/utf8.h"

namespace edgerunner {
namespace {

constexpr std::size_t kCodePoints = 0x100 + 68;  // 188 bytes print; 68 don't

struct Alphabet {
  std::array<std::string, 256> letters;
  std::array<std::int16_t, kCodePoints> bytes{};  // -1: not in the alphabet

  Alphabet() {
    bytes.fill(-1);
    char32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool prints =
          (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      const char32_t code_point = prints ? byte : next++;
      append_utf8(letters[byte], code_point);
      bytes[code_point] = static_cast<std::int16_t>(byte);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet instance;
  return instance;
}

}  // namespace

std::string_view byte_letter(std::uint8_t byte) { return alphabet().letters[byte]; }

void append_letters(std::string& text, std::string_view bytes) {
  for (const char byte : bytes) text += alphabet().letters[static_cast<std::uint8_t>(byte)];
}

std::optional<std::string> letters_to_bytes(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Unit unit = first_utf8_unit(text.substr(at));
    if (unit.kind != Utf8Unit::Kind::character) return std::nullopt;
    const char32_t code_point = utf8_code_point(&text[at], unit.length);
    if (code_point >= kCodePoints || alphabet().bytes[code_point] < 0) return std::nullopt;
    result.push_back(static_cast<char>(alphabet().bytes[code_point]));
    at += unit.length;
  }
  return result;
}

}  // namespace edgerunner
