#include "chat/jinja/strings.h"

#include <fmt/format.h>

#include <algorithm>

#include "chat/jinja/text_builder.h"
#include "chat/jinja/unicode.h"

namespace edgerunner::jinja {
namespace {

constexpr auto kNone = std::string_view::npos;

Value replace_between(Heap& heap, std::string_view text, std::string_view with,
                      std::int64_t count) {
  TextBuilder result(heap);
  std::int64_t done = 0;
  std::size_t at = 0;
  while (count < 0 || done < count) {
    result += with;
    ++done;
    if (at == text.size()) return result.value();
    const std::size_t length = code_point_at(text, at).length;
    result += text.substr(at, length);
    at += length;
  }
  result += text.substr(at);
  return result.value();
}

std::vector<std::string_view> split_space(std::string_view text, std::int64_t most,
                                          bool from_right) {
  std::vector<std::string_view> pieces;
  while (true) {
    text = strip(text, !from_right, from_right, is_space);
    if (text.empty()) break;
    if (most >= 0 && static_cast<std::int64_t>(pieces.size()) == most) {
      pieces.push_back(text);
      break;
    }
    std::string_view rest = text;  // without the piece at this end
    rest = strip(rest, !from_right, from_right, [](char32_t c) { return !is_space(c); });
    const std::size_t length = text.size() - rest.size();
    pieces.push_back(from_right ? text.substr(rest.size()) : text.substr(0, length));
    text = rest;
  }
  return pieces;
}

}  // namespace

Value replace_text(Heap& heap, std::string_view text, std::string_view wanted,
                   std::string_view with, std::int64_t count) {
  if (wanted.empty()) return replace_between(heap, text, with, count);
  TextBuilder result(heap);
  std::size_t at = 0;
  for (std::int64_t done = 0; count < 0 || done < count; ++done) {
    const std::size_t found = find_text(text, wanted, at);
    if (found == kNone) break;
    result += text.substr(at, found - at);
    result += with;
    at = found + wanted.size();
  }
  if (at == 0) return Value::string(text);
  result += text.substr(at);
  return result.value();
}

Value align_text(Heap& heap, std::string_view text, std::int64_t width, std::string_view fill,
                 Alignment alignment) {
  if (count_code_points(fill) != 1) fail("what fills a text up must be one character");
  const auto length = static_cast<std::int64_t>(count_code_points(text));
  if (width <= length) return Value::string(text);
  const auto padding = static_cast<std::size_t>(width - length);
  std::size_t left = alignment == Alignment::right ? padding : 0;
  if (alignment == Alignment::center) {  // as CPython: an odd one goes left where width is odd
    left = padding / 2 + (padding & static_cast<std::size_t>(width) & 1);
  }
  TextBuilder result(heap);
  result.repeat(fill, left);
  result += text;
  result.repeat(fill, padding - left);
  return result.value();
}

std::string_view strip_text(std::string_view text, const Value& chars, bool left, bool right) {
  if (chars.is_none()) return strip(text, left, right, is_space);
  if (!chars.is_string()) fail("the characters to strip must be a string");
  const std::u32string set = decode(chars.as_string());
  return strip(text, left, right,
               [&set](char32_t c) { return set.find(c) != std::u32string::npos; });
}

std::vector<std::string_view> split_text(Budget& budget, std::string_view text,
                                         const Value& separator, std::int64_t most,
                                         bool from_right) {
  std::vector<std::string_view> pieces;
  if (separator.is_none()) {
    pieces = split_space(text, most, from_right);
  } else {
    if (!separator.is_string()) fail("a separator must be a string");
    const std::string_view mark = separator.as_string();
    if (mark.empty()) fail("a separator can't be empty");
    if (from_right && mark.size() > 1) budget.step(text.size() * mark.size() / 1024);
    while (most < 0 || static_cast<std::int64_t>(pieces.size()) < most) {
      const std::size_t found = from_right ? text.rfind(mark) : find_text(text, mark);
      if (found == kNone) break;
      if (from_right) {
        pieces.push_back(text.substr(found + mark.size()));
        text = text.substr(0, found);
      } else {
        pieces.push_back(text.substr(0, found));
        text.remove_prefix(found + mark.size());
      }
    }
    pieces.push_back(text);
  }
  if (from_right) std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

Value list_of(Heap& heap, const std::vector<std::string_view>& pieces) {
  std::vector<Value> values;
  values.reserve(pieces.size());
  for (const std::string_view piece : pieces) values.push_back(Value::string(piece));
  return heap.list(values);
}

}  // namespace edgerunner::jinja
