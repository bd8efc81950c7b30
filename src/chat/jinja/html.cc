#include "chat/jinja/html.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>

#include "chat/jinja/unicode.h"

namespace edgerunner::jinja {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kEntities = {{
    {"&amp;", "&"},
    {"&lt;", "<"},
    {"&gt;", ">"},
    {"&quot;", "\""},
    {"&#34;", "\""},
    {"&#39;", "'"},
}};

std::string unescape(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    bool found = false;
    for (const auto& [entity, character] : kEntities) {
      if (!text.substr(at).starts_with(entity)) continue;
      result += character;
      at += entity.size();
      found = true;
      break;
    }
    if (!found) result += text[at++];
  }
  return result;
}

// Text without what stands between `open` and the next `close`.
std::string without(std::string_view text, std::string_view open, std::string_view close) {
  std::string result;
  std::size_t at = 0;
  while (true) {
    const std::size_t begin = find_text(text, open, at);
    const std::size_t end =
        begin == std::string_view::npos ? begin : find_text(text, close, begin + open.size());
    if (end == std::string_view::npos) return result + std::string(text.substr(at));
    result += text.substr(at, begin - at);
    at = end + close.size();
  }
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&#34;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string strip_tags(std::string_view text) {
  const std::string plain = without(without(text, "<!--", "-->"), "<", ">");
  std::string words;
  bool space = false;
  for (std::size_t at = 0; at < plain.size();) {
    const CodePoint c = code_point_at(plain, at);
    if (is_space(c.value)) {
      space = !words.empty();
    } else {
      if (space) words += ' ';
      space = false;
      words.append(plain, at, c.length);
    }
    at += c.length;
  }
  return unescape(words);
}

}  // namespace edgerunner::jinja
