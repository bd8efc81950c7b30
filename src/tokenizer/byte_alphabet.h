#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace edgerunner {

// GPT-2's alphabet: each byte is written as a printable character, so that a vocabulary of byte
// strings can be stored as text. Bytes that print in Latin-1 stand for themselves; the others
// follow in order from U+0100 (the space is U+0120, the newline U+010A).
std::string_view byte_letter(std::uint8_t byte);

// Appends `bytes` in the alphabet.
void append_letters(std::string& text, std::string_view bytes);

// The bytes that a text in the alphabet stands for; nullopt where some character isn't in it.
std::optional<std::string> letters_to_bytes(std::string_view text);

}  // namespace edgerunner
