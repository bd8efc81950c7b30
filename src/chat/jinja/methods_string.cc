#include <fmt/format.h>

#include <array>

#include "chat/jinja/compare.h"
#include "chat/jinja/elements.h"
#include "chat/jinja/evaluator.h"
#include "chat/jinja/formatting.h"
#include "chat/jinja/methods.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/strings.h"
#include "chat/jinja/text_builder.h"
#include "chat/jinja/unicode.h"

namespace edgerunner::jinja {
namespace {

constexpr auto kNone = std::string_view::npos;

template <std::string convert(std::string_view)>
Value converted(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Parameters none("the method", arguments, {});
  return evaluator.heap().string(convert(self.as_string()), self.flag());
}

template <bool left, bool right>
Value strip_method(Evaluator& /*evaluator*/, const Value& self, const Arguments& arguments) {
  const Parameters parameters("strip", arguments, {"chars"});
  return Value::string(
      strip_text(self.as_string(), parameters.has(0) ? parameters[0] : Value(), left, right),
      self.flag());
}

template <bool from_right>
Value split(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Parameters parameters("split", arguments, {"sep", "maxsplit"});
  return list_of(evaluator.heap(), split_text(evaluator.budget(), self.as_string(),
                                              parameters.has(0) ? parameters[0] : Value(),
                                              parameters.integer(1, -1), from_right));
}

Value splitlines(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Parameters parameters("splitlines", arguments, {"keepends"});
  return list_of(evaluator.heap(), split_lines(self.as_string(), parameters.truth(0)));
}

// The part between two positions, as the optional arguments of find, count, startswith, ... say.
struct Part {
  std::string_view text;
  std::size_t begin;  // in bytes
  bool valid;         // whether `begin` lies within the string
};

Part part_of(const Value& self, const Parameters& parameters, std::size_t first) {
  const std::string_view text = self.as_string();
  if (parameters.is_none(first) && (!parameters.has(first + 1) || parameters.is_none(first + 1))) {
    return {.text = text, .begin = 0, .valid = true};
  }
  const auto size = static_cast<std::int64_t>(count_code_points(text));
  const auto position = [&](std::size_t i, std::int64_t fallback) {
    std::int64_t at = parameters.is_none(i) ? fallback : parameters.integer(i);
    if (at < 0) at = std::max<std::int64_t>(0, at + size);
    return at;
  };
  const std::int64_t begin = position(first, 0);
  const std::int64_t end = std::min(size, position(first + 1, size));
  if (begin > end) return {.text = {}, .begin = 0, .valid = false};
  const std::size_t from = byte_offset(text, static_cast<std::size_t>(begin));
  const std::size_t to = byte_offset(text, static_cast<std::size_t>(end));
  return {.text = text.substr(from, to - from), .begin = from, .valid = true};
}

template <bool at_end>
Value affix(Evaluator& /*evaluator*/, const Value& self, const Arguments& arguments) {
  const Parameters parameters(at_end ? "endswith" : "startswith", arguments,
                              {"prefix", "start", "end"}, 1);
  const Part part = part_of(self, parameters, 1);
  const auto matches = [&part](const Value& wanted) {
    if (!wanted.is_string()) {
      if (wanted.is_undefined()) fail(std::string(wanted.as<Undefined>()->message));
      fail("startswith and endswith need a string, or a tuple of strings");
    }
    return part.valid && (at_end ? part.text.ends_with(wanted.as_string())
                                 : part.text.starts_with(wanted.as_string()));
  };
  if (!parameters[0].is(Kind::tuple)) return matches(parameters[0]);
  for (const Value& wanted : parameters[0].items()) {
    if (matches(wanted)) return true;
  }
  return false;
}

// The position of a text, in code points, or -1.
std::int64_t position_of(Evaluator& evaluator, const Value& self, const Parameters& parameters,
                         bool from_right) {
  const Part part = part_of(self, parameters, 1);
  const std::string_view wanted = parameters.text(0);
  if (!part.valid) return -1;
  if (from_right && wanted.size() > 1) {
    evaluator.budget().step(part.text.size() * wanted.size() / 1024);
  }
  const std::size_t found = from_right ? part.text.rfind(wanted) : find_text(part.text, wanted);
  if (found == kNone) return -1;
  return static_cast<std::int64_t>(
      count_code_points(self.as_string().substr(0, part.begin + found)));
}

template <bool from_right, bool must_be_there>
Value find(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Parameters parameters("find", arguments, {"sub", "start", "end"}, 1);
  const std::int64_t position = position_of(evaluator, self, parameters, from_right);
  if (must_be_there && position < 0) fail("the text is not found in the string");
  return Value::integer(position);
}

Value count(Evaluator& /*evaluator*/, const Value& self, const Arguments& arguments) {
  const Parameters parameters("count", arguments, {"sub", "start", "end"}, 1);
  const Part part = part_of(self, parameters, 1);
  const std::string_view wanted = parameters.text(0);
  if (!part.valid) return Value::integer(0);
  if (wanted.empty()) {
    return Value::integer(static_cast<std::int64_t>(count_code_points(part.text)) + 1);
  }
  std::int64_t found = 0;
  for (std::size_t at = 0; (at = find_text(part.text, wanted, at)) != kNone; at += wanted.size()) {
    ++found;
  }
  return Value::integer(found);
}

Value replace(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Parameters parameters("replace", arguments, {"old", "new", "count"}, 2);
  return replace_text(evaluator.heap(), self.as_string(), parameters.text(0), parameters.text(1),
                      parameters.integer(2, -1));
}

Value join(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Parameters parameters("join", arguments, {"iterable"}, 1);
  Heap& heap = evaluator.heap();
  const Elements elements(heap, parameters[0]);
  TextBuilder text(heap);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const Value item = elements.at(heap, i);
    if (!item.is_string()) {
      fail(fmt::format("join needs strings, not '{}'; use |join", type_name(item)));
    }
    if (i > 0) text += self.as_string();
    text += item.as_string();
  }
  return text.value();
}

template <Alignment alignment>
Value align(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Parameters parameters("the method", arguments, {"width", "fillchar"}, 1);
  return align_text(evaluator.heap(), self.as_string(), parameters.integer(0),
                    parameters.text(1, " "), alignment);
}

Value zfill(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Parameters parameters("zfill", arguments, {"width"}, 1);
  std::string_view text = self.as_string();
  const bool has_sign = text.starts_with('-') || text.starts_with('+');
  const std::string_view sign = text.substr(0, has_sign ? 1 : 0);
  text.remove_prefix(sign.size());
  const Value digits = align_text(evaluator.heap(), text,
                                  parameters.integer(0) - static_cast<std::int64_t>(sign.size()),
                                  "0", Alignment::right);
  return evaluator.heap().join(sign, digits.as_string());
}

template <bool from_right>
Value partition(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Parameters parameters("partition", arguments, {"sep"}, 1);
  const std::string_view text = self.as_string();
  const std::string_view mark = parameters.text(0);
  if (mark.empty()) fail("a separator can't be empty");
  if (from_right) evaluator.budget().step(text.size() * mark.size() / 1024);
  const std::size_t at = from_right ? text.rfind(mark) : find_text(text, mark);
  Value parts[3] = {Value::string(""), Value::string(""), Value::string("")};
  if (at == kNone) {
    parts[from_right ? 2 : 0] = self;
  } else {
    parts[0] = Value::string(text.substr(0, at));
    parts[1] = Value::string(mark);
    parts[2] = Value::string(text.substr(at + mark.size()));
  }
  return evaluator.heap().tuple(parts);
}

Value removeprefix(Evaluator& /*evaluator*/, const Value& self, const Arguments& arguments) {
  const Parameters parameters("removeprefix", arguments, {"prefix"}, 1);
  const std::string_view text = self.as_string();
  const std::string_view prefix = parameters.text(0);
  return Value::string(text.starts_with(prefix) ? text.substr(prefix.size()) : text);
}

Value removesuffix(Evaluator& /*evaluator*/, const Value& self, const Arguments& arguments) {
  const Parameters parameters("removesuffix", arguments, {"suffix"}, 1);
  const std::string_view text = self.as_string();
  const std::string_view suffix = parameters.text(0);
  return Value::string(text.ends_with(suffix) ? text.substr(0, text.size() - suffix.size()) : text);
}

Value expandtabs(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Parameters parameters("expandtabs", arguments, {"tabsize"});
  const std::int64_t size = parameters.integer(0, 8);
  TextBuilder text(evaluator.heap());
  std::int64_t column = 0;
  const std::string_view all = self.as_string();
  for (std::size_t at = 0; at < all.size();) {
    const CodePoint c = code_point_at(all, at);
    if (c.value != '\t') {
      text += all.substr(at, c.length);
      column = c.value == '\n' || c.value == '\r' ? 0 : column + 1;
    } else if (size > 0) {
      const std::int64_t spaces = size - column % size;
      text.repeat(" ", static_cast<std::size_t>(spaces));
      column += spaces;
    }
    at += c.length;
  }
  return text.value();
}

Value format(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  return brace_format(evaluator, self.as_string(), arguments);
}

Value format_map(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Parameters parameters("format_map", arguments, {"mapping"}, 1);
  if (!parameters[0].is(Kind::dict)) fail("format_map needs a dict");
  Arguments names;
  for (const auto& [key, value] : parameters[0].as<Dict>()->all()) {
    if (key.is_string()) names.named.emplace_back(key.as_string(), value);
  }
  return brace_format(evaluator, self.as_string(), names);
}

constexpr std::array<Named<Filter>, 32> kMethods = {{
    {"upper", converted<to_upper>},
    {"lower", converted<to_lower>},
    {"title", converted<to_title>},
    {"capitalize", converted<capitalize>},
    {"swapcase", converted<swap_case>},
    {"casefold", converted<case_fold>},
    {"strip", strip_method<true, true>},
    {"lstrip", strip_method<true, false>},
    {"rstrip", strip_method<false, true>},
    {"split", split<false>},
    {"rsplit", split<true>},
    {"splitlines", splitlines},
    {"startswith", affix<false>},
    {"endswith", affix<true>},
    {"find", find<false, false>},
    {"rfind", find<true, false>},
    {"index", find<false, true>},
    {"rindex", find<true, true>},
    {"count", count},
    {"replace", replace},
    {"join", join},
    {"center", align<Alignment::center>},
    {"ljust", align<Alignment::left>},
    {"rjust", align<Alignment::right>},
    {"zfill", zfill},
    {"partition", partition<false>},
    {"rpartition", partition<true>},
    {"removeprefix", removeprefix},
    {"removesuffix", removesuffix},
    {"expandtabs", expandtabs},
    {"format", format},
    {"format_map", format_map},
}};

}  // namespace

std::span<const Named<Filter>> string_methods() { return kMethods; }

}  // namespace edgerunner::jinja
