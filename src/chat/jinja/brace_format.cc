#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

#include "chat/jinja/evaluator.h"
#include "chat/jinja/formatting.h"
#include "chat/jinja/number_format.h"
#include "chat/jinja/text.h"
#include "chat/jinja/text_builder.h"
#include "chat/jinja/unicode.h"

namespace edgerunner::jinja {
namespace {

// [[fill]align][sign][z][#][0][width][grouping][.precision][type]
struct Spec {
  std::string_view fill = " ";
  char align = 0;
  std::size_t width = 0;
  char type = 0;
  NumberFormat number;
};

bool is_align(char32_t c) { return c == '<' || c == '>' || c == '^' || c == '='; }

std::size_t take_number(std::string_view text, std::size_t& at) {
  std::size_t value = 0;
  const auto result = std::from_chars(text.data() + at, text.data() + text.size(), value);
  if (result.ec == std::errc::result_out_of_range || value > (std::size_t{1} << 30)) {
    fail("a width in the format is too large");
  }
  at = static_cast<std::size_t>(result.ptr - text.data());
  return value;
}

Spec parse_spec(std::string_view text) {
  Spec spec;
  std::size_t at = 0;
  const auto peek = [&] { return at < text.size() ? text[at] : '\0'; };
  if (!text.empty()) {
    const std::size_t first = code_point_at(text, 0).length;
    if (first < text.size() && is_align(static_cast<unsigned char>(text[first]))) {
      spec.fill = text.substr(0, first);
      at = first;
    }
    if (is_align(static_cast<unsigned char>(peek()))) spec.align = text[at++];
  }
  if (peek() == '+' || peek() == '-' || peek() == ' ') spec.number.sign = text[at++];
  if (peek() == '#') {
    spec.number.alternate = true;
    ++at;
  }
  if (peek() == '0') {
    if (spec.align == 0) {
      spec.fill = "0";
      spec.align = '=';
    }
    ++at;
  }
  spec.width = take_number(text, at);
  if (peek() == ',' || peek() == '_') spec.number.grouping = text[at++];
  if (peek() == '.') {
    ++at;
    if (peek() < '0' || peek() > '9') fail("the format's precision is missing");
    spec.number.precision = static_cast<int>(take_number(text, at));
  }
  if (at < text.size()) spec.type = text[at++];
  if (at < text.size()) fail(fmt::format("'{}' is no format", text));
  return spec;
}

class BraceFormatter {
 public:
  BraceFormatter(Evaluator& evaluator, const Arguments& arguments)
      : evaluator_(evaluator), arguments_(arguments) {}

  std::string run(std::string_view format, int depth) {
    if (depth > 2) fail("the format nests too deeply");
    TextBuilder out(evaluator_.heap());
    for (std::size_t at = 0; at < format.size();) {
      const std::size_t brace = format.find_first_of("{}", at);
      out += format.substr(at, brace - at);
      if (brace == std::string_view::npos) break;
      at = brace + 1;
      if (at < format.size() && format[at] == format[brace]) {
        out += format.substr(brace, 1);
        ++at;
        continue;
      }
      if (format[brace] == '}') fail("the format has a '}' without its '{'");
      std::size_t end = at;
      for (int open = 1; open > 0; ++end) {
        if (end >= format.size()) fail("the format has a '{' without its '}'");
        if (format[end] == '{') ++open;
        if (format[end] == '}') --open;
      }
      field(out, format.substr(at, end - 1 - at), depth);
      at = end;
    }
    return out.text();
  }

 private:
  void field(TextBuilder& out, std::string_view text, int depth) {
    const std::size_t name_end = std::min(text.find_first_of("!:"), text.size());
    const Value value = lookup(text.substr(0, name_end));
    std::string_view rest = text.substr(name_end);
    char conversion = 0;
    if (rest.starts_with('!')) {
      if (rest.size() < 2) fail("the format's conversion is missing");
      conversion = rest[1];
      rest.remove_prefix(2);
      if (!rest.empty() && rest.front() != ':') fail("':' must follow the format's conversion");
    }
    if (!rest.empty()) rest.remove_prefix(1);
    const std::string spec_text = run(rest, depth + 1);
    put(out, converted(value, conversion), parse_spec(spec_text), spec_text.empty());
  }

  Value converted(const Value& value, char conversion) {
    Budget& budget = evaluator_.budget();
    switch (conversion) {
      case 0:
        return value;
      case 's':
        return evaluator_.heap().string(to_text(budget, value));
      case 'r':
        return evaluator_.heap().string(to_repr(budget, value));
      default:
        fail_unsupported(fmt::format("the conversion '!{}'", conversion));
    }
  }

  Value lookup(std::string_view path) {
    const std::size_t end = std::min(path.find_first_of(".["), path.size());
    Value value = first(path.substr(0, end));
    std::string_view rest = path.substr(end);
    while (!rest.empty()) {
      if (rest.front() == '.') {
        const std::size_t next = std::min(rest.find_first_of(".[", 1), rest.size());
        value = evaluator_.attribute(
            value, evaluator_.heap().string(rest.substr(1, next - 1)).as_string());
        rest.remove_prefix(next);
      } else {
        const std::size_t close = rest.find(']');
        if (rest.front() != '[' || close == std::string_view::npos) {
          fail("the format has a '[' without its ']'");
        }
        value = evaluator_.item(value, index(rest.substr(1, close - 1)));
        rest.remove_prefix(close + 1);
      }
    }
    return value;
  }

  Value index(std::string_view text) {
    std::int64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, number);
    if (!text.empty() && text.front() != '-' && result.ec == std::errc{} && result.ptr == end) {
      return Value::integer(number);
    }
    return evaluator_.heap().string(text);
  }

  Value first(std::string_view name) {
    std::size_t position = 0;
    const char* const end = name.data() + name.size();
    const auto result = std::from_chars(name.data(), end, position);
    const bool numbered = !name.empty() && result.ec == std::errc{} && result.ptr == end;
    if (name.empty() || numbered) {
      const Numbering wanted = numbered ? Numbering::manual : Numbering::automatic;
      if (numbering_ != Numbering::unknown && numbering_ != wanted) {
        fail("the format mixes fields with and without numbers");
      }
      numbering_ = wanted;
      if (!numbered) position = next_++;
      if (position >= arguments_.positional.size())
        fail("there are not enough values for the format");
      return arguments_.positional[position];
    }
    const Value* const named = arguments_.find(name);
    if (named == nullptr) fail(fmt::format("the format's '{}' is missing", name));
    return *named;
  }

  void put(TextBuilder& out, const Value& value, const Spec& spec, bool plain) {
    if (value.is_number() && !(value.is(Kind::boolean) && spec.type == 0)) {
      return put_number(out, value, spec);
    }
    if (plain) {
      out += to_text(evaluator_.budget(), value);
      return;
    }
    if (!value.is_string() && !value.is(Kind::boolean)) {
      fail(fmt::format("a value of type '{}' takes no format", type_name(value)));
    }
    if (value.is(Kind::boolean)) return put_number(out, value, spec);
    if ((spec.type != 0 && spec.type != 's') || spec.align == '=' || spec.number.sign != '-' ||
        spec.number.alternate || spec.number.grouping != 0) {
      if (spec.align != '=' || spec.fill != "0") fail("this format is none for a string");
    }
    std::string_view text = value.as_string();
    if (spec.number.precision) {
      text = text.substr(0, byte_offset(text, static_cast<std::size_t>(*spec.number.precision)));
    }
    pad(out, "", text, spec, '<');
  }

  void put_number(TextBuilder& out, const Value& value, const Spec& spec) {
    NumberFormat number = spec.number;
    const bool floating = value.is(Kind::floating);
    char type = spec.type;
    if (type == 0) type = floating ? 'r' : 'd';
    if (type == 'n') type = floating ? 'g' : 'd';
    const bool integer_type = std::string_view("dboxX").find(type) != std::string_view::npos;
    const bool float_type = std::string_view("eEfFgG%r").find(type) != std::string_view::npos;
    if (type == 'c') fail_unsupported("the format 'c'");
    if ((!integer_type && !float_type) || (integer_type && floating)) {
      fail(fmt::format("'{}' is no format for a value of type '{}'", type, type_name(value)));
    }
    if (integer_type && number.precision) fail("an integer takes no precision");
    number.type = type;
    const FormattedNumber made = format_number(value, number);
    if (spec.align == '=' && spec.fill == "0" && number.grouping != 0 &&
        spec.width > made.prefix.size() + made.digits.size()) {
      fail_unsupported("zeros in front of grouped digits");
    }
    pad(out, made.prefix, made.digits, spec, '>');
  }

  static void pad(TextBuilder& out, std::string_view prefix, std::string_view text,
                  const Spec& spec, char usual) {
    const std::size_t length = count_code_points(prefix) + count_code_points(text);
    const std::size_t padding = spec.width > length ? spec.width - length : 0;
    char align = spec.align == 0 ? usual : spec.align;
    if (align == '=' && usual == '<') align = '<';  // a string with "0" in front of its width
    if (align == '>') out.repeat(spec.fill, padding);
    if (align == '^') out.repeat(spec.fill, padding / 2);
    out += prefix;
    if (align == '=') out.repeat(spec.fill, padding);
    out += text;
    if (align == '<') out.repeat(spec.fill, padding);
    if (align == '^') out.repeat(spec.fill, padding - padding / 2);
  }

  enum class Numbering { unknown, automatic, manual };

  Evaluator& evaluator_;
  const Arguments& arguments_;
  Numbering numbering_ = Numbering::unknown;
  std::size_t next_ = 0;
};

}  // namespace

Value brace_format(Evaluator& evaluator, std::string_view format, const Arguments& arguments) {
  return evaluator.heap().string(BraceFormatter(evaluator, arguments).run(format, 0));
}

}  // namespace edgerunner::jinja
