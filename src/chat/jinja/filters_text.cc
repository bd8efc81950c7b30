#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "chat/jinja/builtins.h"
#include "chat/jinja/elements.h"
#include "chat/jinja/evaluator.h"
#include "chat/jinja/formatting.h"
#include "chat/jinja/html.h"
#include "chat/jinja/numbers.h"
#include "chat/jinja/strings.h"
#include "chat/jinja/text.h"
#include "chat/jinja/text_builder.h"
#include "chat/jinja/unicode.h"

namespace edgerunner::jinja {
namespace {

// The value as a string, whatever it is.
Value as_text(Evaluator& evaluator, const Value& value) {
  if (value.is_string()) return value;
  return evaluator.heap().string(to_text(evaluator.budget(), value));
}

std::string_view require_text(std::string_view filter, const Value& value) {
  if (value.is_string()) return value.as_string();
  if (value.is_undefined()) fail(std::string(value.as<Undefined>()->message));
  fail(fmt::format("{} needs a string, not '{}'", filter, type_name(value)));
}

template <std::string convert(std::string_view)>
Value converted(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters none("the filter", arguments, {});
  return evaluator.heap().string(convert(as_text(evaluator, value).as_string()), value.flag());
}

// Words begin behind blank space and opening brackets only, not behind every non-letter.
std::string title_case(std::string_view text) {
  const auto begins_word = [](char32_t c) {
    return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c);
  };
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const bool separators = begins_word(code_point_at(text, at).value);
    while (at < text.size() && begins_word(code_point_at(text, at).value) == separators) {
      at += code_point_at(text, at).length;
    }
    const std::string_view item = text.substr(begin, at - begin);
    const std::size_t first = code_point_at(item, 0).length;
    result += to_upper(item.substr(0, first));
    result += to_lower(item.substr(first));
  }
  return result;
}

Value string(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters none("string", arguments, {});
  return as_text(evaluator, value);
}

Value trim(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters parameters("trim", arguments, {"chars"});
  const Value text = as_text(evaluator, value);
  return Value::string(
      strip_text(text.as_string(), parameters.has(0) ? parameters[0] : Value(), true, true),
      value.flag());
}

Value replace(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters parameters("replace", arguments, {"old", "new", "count"}, 2);
  const auto text = [&](const Value& part) { return as_text(evaluator, part).as_string(); };
  return replace_text(evaluator.heap(), text(value), text(parameters[0]), text(parameters[1]),
                      parameters.is_none(2) ? -1 : parameters.integer(2));
}

Value center(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters parameters("center", arguments, {"width"});
  return align_text(evaluator.heap(), as_text(evaluator, value).as_string(),
                    parameters.integer(0, 80), " ", Alignment::center);
}

Value indent(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters parameters("indent", arguments, {"width", "first", "blank"});
  Heap& heap = evaluator.heap();
  Value indention = Value::string("    ");
  if (parameters.has(0) && parameters[0].is_string()) {
    indention = parameters[0];
  } else if (parameters.has(0)) {
    indention = align_text(heap, "", parameters.integer(0), " ", Alignment::left);
  }
  const std::string text = std::string(require_text("indent", value)) + "\n";
  TextBuilder result(heap);
  bool is_first = true;
  for (const std::string_view line : split_lines(text)) {
    if (!is_first) result += "\n";
    const bool indented = is_first ? parameters.truth(1) : parameters.truth(2) || !line.empty();
    if (indented) result += indention.as_string();
    result += line;
    is_first = false;
  }
  return result.value(value.flag());
}

Value truncate_text(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters parameters("truncate", arguments, {"length", "killwords", "end", "leeway"});
  const std::int64_t most = parameters.integer(0, 255);
  const std::string_view end = parameters.text(2, "...");
  const std::int64_t leeway = parameters.is_none(3) ? 5 : parameters.integer(3);
  const auto end_length = static_cast<std::int64_t>(count_code_points(end));
  if (most < end_length) fail("truncate: 'length' is less than the length of 'end'");
  if (leeway < 0) fail("truncate: 'leeway' must not be negative");
  if (static_cast<std::int64_t>(length(value)) - leeway <= most) return value;
  const std::string_view text = require_text("truncate", value);
  std::string_view kept =
      text.substr(0, byte_offset(text, static_cast<std::size_t>(most - end_length)));
  if (!parameters.truth(1)) kept = kept.substr(0, kept.rfind(' '));
  return evaluator.heap().join(kept, end, value.flag());
}

// textwrap.wrap without its rules for hyphens.
void wrap_line(TextBuilder& result, std::string_view line, std::size_t width, bool break_long,
               std::string_view newline) {
  struct Chunk {
    std::u32string text;
    bool space;
  };
  std::vector<Chunk> chunks;
  for (const char32_t c : decode(line)) {
    const bool space = c < 0x80 && is_space(c) && c < 0x1C + (c == ' ' ? 0x10U : 0U);
    if (chunks.empty() || chunks.back().space != space) chunks.push_back({{}, space});
    chunks.back().text += c;
  }
  std::reverse(chunks.begin(), chunks.end());  // the next is the last
  bool is_first = true;
  while (!chunks.empty()) {
    std::vector<Chunk> row;
    std::size_t length = 0;
    if (chunks.back().space && !is_first) chunks.pop_back();
    while (!chunks.empty() && length + chunks.back().text.size() <= width) {
      length += chunks.back().text.size();
      row.push_back(std::move(chunks.back()));
      chunks.pop_back();
    }
    if (!chunks.empty() && chunks.back().text.size() > width) {
      const std::size_t room = width - length;
      if (break_long) {
        row.push_back(
            {chunks.back().text.substr(0, std::max<std::size_t>(room, width == 0)), false});
        chunks.back().text.erase(0, row.back().text.size());
      } else if (row.empty()) {
        row.push_back(std::move(chunks.back()));
        chunks.pop_back();
      }
    }
    if (!row.empty() && row.back().space) row.pop_back();
    if (row.empty()) continue;
    if (!is_first) result += newline;
    for (const Chunk& chunk : row) result += encode(chunk.text);
    is_first = false;
  }
}

Value wordwrap(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters parameters("wordwrap", arguments,
                              {"width", "break_long_words", "wrapstring", "break_on_hyphens"});
  const std::string_view text = require_text("wordwrap", value);
  const std::int64_t width = parameters.integer(0, 79);
  if (width <= 0) fail("wordwrap: 'width' must be positive");
  if (parameters.truth(3, true) && text.find('-') != std::string_view::npos) {
    fail_unsupported("wordwrap at hyphens");
  }
  const std::string_view newline = parameters.is_none(2) ? "\n" : parameters.text(2);
  TextBuilder result(evaluator.heap());
  bool is_first = true;
  for (const std::string_view line : split_lines(text)) {
    if (!is_first) result += newline;
    wrap_line(result, line, static_cast<std::size_t>(width), parameters.truth(1, true), newline);
    is_first = false;
  }
  return result.value();
}

Value wordcount(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters none("wordcount", arguments, {});
  std::int64_t words = 0;
  bool in_word = false;
  for (const char32_t c : decode(as_text(evaluator, value).as_string())) {
    if (is_word(c) && !in_word) ++words;
    in_word = is_word(c);
  }
  return Value::integer(words);
}

Value escape(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters none("escape", arguments, {});
  if (value.is_string() && value.flag()) return value;
  return evaluator.heap().string(escape_html(as_text(evaluator, value).as_string()), true);
}

Value forceescape(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters none("forceescape", arguments, {});
  return evaluator.heap().string(escape_html(as_text(evaluator, value).as_string()), true);
}

Value safe(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters none("safe", arguments, {});
  return Value::string(as_text(evaluator, value).as_string(), true);
}

Value striptags(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters none("striptags", arguments, {});
  return evaluator.heap().string(strip_tags(as_text(evaluator, value).as_string()));
}

void quote_url(TextBuilder& result, std::string_view text, bool query) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (byte < 0x80 && std::isalnum(byte) != 0) || c == '_' || c == '.' ||
                       c == '-' || c == '~' || (c == '/' && !query);
    if (plain) {
      result += std::string_view(&c, 1);
    } else if (query && c == ' ') {
      result += "+";
    } else {
      result += fmt::format("%{:02X}", byte);
    }
  }
}

Value urlencode(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters none("urlencode", arguments, {});
  Heap& heap = evaluator.heap();
  TextBuilder result(heap);
  if (value.is_string() || !Elements::is_iterable(value)) {
    quote_url(result, as_text(evaluator, value).as_string(), false);
    return result.value();
  }
  const Value pairs =
      value.is(Kind::dict)
          ? Value::object(Kind::view, heap.make(View{value.as<Dict>(), View::Part::items}))
          : value;
  const Elements elements(heap, pairs);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const List pair = Elements(heap, elements.at(heap, i)).all(heap);
    if (pair.size != 2) fail("urlencode needs pairs of a key and a value");
    if (i > 0) result += "&";
    quote_url(result, as_text(evaluator, pair.items[0]).as_string(), true);
    result += "=";
    quote_url(result, as_text(evaluator, pair.items[1]).as_string(), true);
  }
  return result.value();
}

Value xmlattr(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters parameters("xmlattr", arguments, {"autospace"});
  if (!value.is(Kind::dict)) fail("xmlattr needs a dict");
  TextBuilder result(evaluator.heap());
  for (const auto& [key, item] : value.as<Dict>()->all()) {
    if (item.is_none() || item.is_undefined()) continue;
    if (!result.empty() || parameters.truth(0, true)) result += " ";
    result += escape(evaluator, key, {}).as_string();
    result += "=\"";
    result += escape(evaluator, item, {}).as_string();
    result += "\"";
  }
  return result.value();
}

Value format(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  Heap& heap = evaluator.heap();
  if (!arguments.positional.empty() && !arguments.named.empty()) {
    fail("format takes arguments by place or by name, not both");
  }
  Value given = heap.tuple(arguments.positional);
  if (!arguments.named.empty()) {
    Dict* const names = heap.dict(arguments.named.size());
    for (const auto& [name, item] : arguments.named) {
      heap.append(*names, Value::string(name), item);
    }
    given = Value::object(Kind::dict, names);
  }
  return printf_format(heap, as_text(evaluator, value), given);
}

Value filesizeformat(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters parameters("filesizeformat", arguments, {"binary"});
  constexpr std::string_view kPrefixes = "kMGTPEZY";
  double bytes = 0;
  if (value.is_number()) {
    bytes = value.as_double();
  } else {
    const auto parsed = parse_float(require_text("filesizeformat", value));
    if (!parsed) fail("filesizeformat needs a number");
    bytes = *parsed;
  }
  const bool binary = parameters.truth(0);
  const double base = binary ? 1024 : 1000;
  if (bytes == 1) return Value::string("1 Byte");
  if (bytes < base) return evaluator.heap().string(fmt::format("{} Bytes", truncate(bytes)));
  double unit = base;
  std::size_t prefix = 0;
  for (; prefix + 1 < kPrefixes.size() && bytes >= unit * base; ++prefix) unit *= base;
  const char letter = binary && prefix == 0 ? 'K' : kPrefixes[prefix];
  return evaluator.heap().string(
      fmt::format("{:.1f} {}{}", base * bytes / (unit * base), letter, binary ? "iB" : "B"));
}

Value urlize(Evaluator& /*evaluator*/, const Value& /*value*/, const Arguments& /*arguments*/) {
  fail_unsupported("the filter urlize");
}

constexpr std::array<Named<Filter>, 22> kFilters = {{
    {"upper", converted<to_upper>},
    {"lower", converted<to_lower>},
    {"capitalize", converted<capitalize>},
    {"title", converted<title_case>},
    {"string", string},
    {"trim", trim},
    {"replace", replace},
    {"center", center},
    {"indent", indent},
    {"truncate", truncate_text},
    {"wordwrap", wordwrap},
    {"wordcount", wordcount},
    {"escape", escape},
    {"e", escape},
    {"forceescape", forceescape},
    {"safe", safe},
    {"striptags", striptags},
    {"urlencode", urlencode},
    {"xmlattr", xmlattr},
    {"format", format},
    {"filesizeformat", filesizeformat},
    {"urlize", urlize},
}};

}  // namespace

std::span<const Named<Filter>> text_filters() { return kFilters; }

}  // namespace edgerunner::jinja
