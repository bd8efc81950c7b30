#include "chat/jinja/text_class.h"

#include "chat/jinja/unicode.h"

namespace edgerunner::jinja {
namespace {

// Whether the text has cased characters, and none that `is_wrong`.
bool is_cased_text(std::string_view text, bool (*is_wrong)(char32_t)) {
  bool cased = false;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    if (is_wrong(c.value)) return false;
    cased = cased || is_cased(c.value);
    at += c.length;
  }
  return cased;
}

}  // namespace

bool is_lower_text(std::string_view text) {
  return is_cased_text(text, [](char32_t c) { return is_upper(c) || is_title(c); });
}

bool is_upper_text(std::string_view text) {
  return is_cased_text(text, [](char32_t c) { return is_lower(c) || is_title(c); });
}

bool is_title_text(std::string_view text) {
  bool cased = false;
  bool in_word = false;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    const bool begins = is_upper(c.value) || is_title(c.value);
    if (begins ? in_word : is_lower(c.value) && !in_word) return false;
    in_word = begins || is_lower(c.value);
    cased = cased || in_word;
    at += c.length;
  }
  return cased;
}

bool is_identifier(std::string_view text) {
  if (!all_of_class(text, is_word)) return false;
  const char32_t first = code_point_at(text, 0).value;
  return first == '_' || is_alpha(first);
}

bool all_of_class(std::string_view text, bool (*is_member)(char32_t)) {
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    if (!is_member(c.value)) return false;
    at += c.length;
  }
  return !text.empty();
}

}  // namespace edgerunner::jinja
