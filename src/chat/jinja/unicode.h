#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace edgerunner::jinja {

// Python's strings are sequences of code points; ours are UTF-8, well formed throughout.

struct CodePoint {
  char32_t value;
  std::size_t length;  // bytes
};
CodePoint code_point_at(std::string_view text, std::size_t at);
CodePoint code_point_before(std::string_view text, std::size_t end);
std::size_t count_code_points(std::string_view text);
// The byte offset of code point number `index`, or the size where there are fewer.
std::size_t byte_offset(std::string_view text, std::size_t index);
bool is_ascii(std::string_view text);
std::u32string decode(std::string_view text);
std::string encode(std::u32string_view text);

// The first place of a text in another, from `from` on, or npos; in linear time whatever they hold.
std::size_t find_text(std::string_view text, std::string_view wanted, std::size_t from = 0);

// Classes and case as Python's str methods take them.
bool is_space(char32_t c);
bool is_line_break(char32_t c);
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
bool is_digit(char32_t c);
bool is_numeric(char32_t c);
bool is_upper(char32_t c);
bool is_lower(char32_t c);
bool is_title(char32_t c);
bool is_cased(char32_t c);
bool is_printable(char32_t c);
bool is_word(char32_t c);  // \w
std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string to_title(std::string_view text);
std::string capitalize(std::string_view text);
std::string swap_case(std::string_view text);
std::string case_fold(std::string_view text);

// The text without the code points at its ends for which `drop` holds.
template <typename Drop>
std::string_view strip(std::string_view text, bool left, bool right, Drop drop) {
  while (left && !text.empty()) {
    const CodePoint c = code_point_at(text, 0);
    if (!drop(c.value)) break;
    text.remove_prefix(c.length);
  }
  while (right && !text.empty()) {
    const CodePoint c = code_point_before(text, text.size());
    if (!drop(c.value)) break;
    text.remove_suffix(c.length);
  }
  return text;
}

// The lines of a text without their ends, as str.splitlines; with them where `keep_ends`.
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends = false);

}  // namespace edgerunner::jinja
