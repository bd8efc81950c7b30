#include "chat/jinja/text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "chat/jinja/compare.h"
#include "chat/jinja/heap.h"
#include "chat/jinja/loop.h"
#include "chat/jinja/syntax_tree.h"
#include "chat/jinja/unicode.h"

namespace edgerunner::jinja {
namespace {

// Writes a value's repr, counting what it takes as it grows: a value may hold itself many times
// over.
class Printer {
 public:
  explicit Printer(Budget& budget) : budget_(budget) {}
  ~Printer() { budget_.give_back(counted_); }
  Printer(const Printer&) = delete;
  Printer& operator=(const Printer&) = delete;

  std::string take() { return std::move(out_); }

  void repr(const Value& value, int depth) {
    if (depth > kMostValueNesting) fail("a value is nested too deeply to be printed");
    budget_.step();
    count();
    switch (value.kind()) {
      case Kind::undefined:
        out_ += "Undefined";
        return;
      case Kind::none:
        out_ += "None";
        return;
      case Kind::boolean:
        out_ += value.as_bool() ? "True" : "False";
        return;
      case Kind::integer:
        out_ += fmt::to_string(value.as_integer());
        return;
      case Kind::floating:
        out_ += float_text(value.as_double());
        return;
      case Kind::string:
        out_ += value.flag() ? fmt::format("Markup({})", string_repr(value.as_string()))
                             : string_repr(value.as_string());
        return;
      case Kind::list:
        return items(value, '[', ']', depth);
      case Kind::tuple:
        return items(value, '(', ')', depth);
      case Kind::dict:
        return dict(*value.as<Dict>(), depth);
      case Kind::view:
        return view(*value.as<View>(), depth);
      case Kind::space:
        out_ += "<Namespace ";
        dict(*value.as<Dict>(), depth);
        out_ += ">";
        return;
      default:
        others(value);
    }
  }

 private:
  void count() {
    if (out_.size() <= counted_) return;
    budget_.take(out_.size() - counted_);
    counted_ = out_.size();
  }

  void items(const Value& value, char open, char close, int depth) {
    out_ += open;
    const auto all = value.items();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i > 0) out_ += ", ";
      repr(all[i], depth + 1);
    }
    if (open == '(' && all.size() == 1) out_ += ",";
    out_ += close;
  }

  void dict(const Dict& value, int depth) {
    out_ += '{';
    for (std::size_t i = 0; i < value.size; ++i) {
      if (i > 0) out_ += ", ";
      repr(value.entries[i].key, depth + 1);
      out_ += ": ";
      repr(value.entries[i].value, depth + 1);
    }
    out_ += '}';
  }

  void view(const View& value, int depth) {
    constexpr std::array<std::string_view, 3> kNames = {"dict_keys([", "dict_values([",
                                                        "dict_items(["};
    out_ += kNames[static_cast<std::size_t>(value.part)];
    for (std::size_t i = 0; i < value.dict->size; ++i) {
      const Dict::Entry& entry = value.dict->entries[i];
      if (i > 0) out_ += ", ";
      if (value.part == View::Part::items) out_ += '(';
      if (value.part != View::Part::values) repr(entry.key, depth + 1);
      if (value.part == View::Part::items) out_ += ", ";
      if (value.part != View::Part::keys) repr(entry.value, depth + 1);
      if (value.part == View::Part::items) out_ += ')';
    }
    out_ += "])";
  }

  void others(const Value& value) {
    if (value.is(Kind::range)) {
      const Range& range = *value.as<Range>();
      out_ += fmt::format("range({}, {}", range.start, range.stop);
      out_ += range.step == 1 ? ")" : fmt::format(", {})", range.step);
    } else if (value.is(Kind::loop) && !value.as<Loop>()->statement->expressions[1]) {
      const Loop& loop = *value.as<Loop>();
      out_ += fmt::format("<LoopContext {}/{}>", loop.index0 + 1, loop.elements.size());
    } else if (value.is(Kind::macro)) {
      const Macro& macro = *value.as<Macro>();
      out_ += macro.name.empty() ? "<Macro anonymous>"
                                 : fmt::format("<Macro {}>", string_repr(macro.name));
    } else {
      fail(fmt::format("a value of type '{}' has no text of its own", type_name(value)));
    }
  }

  Budget& budget_;
  std::string out_;
  std::size_t counted_ = 0;
};

}  // namespace

std::string_view type_name(const Value& value) {
  constexpr std::array<std::string_view, 21> kNames = {
      "Undefined", "NoneType",       "bool",
      "int",       "float",          "str",
      "list",      "tuple",          "dict",
      "dict view", "range",          "",
      "Namespace", "Macro",          "function",
      "method",    "LoopContext",    "Cycler",
      "Joiner",    "BlockReference", "TemplateReference"};
  if (value.is(Kind::iterator)) return value.as<Iterator>()->type;
  return kNames[static_cast<std::size_t>(value.kind())];
}

std::string to_text(Budget& budget, const Value& value) {
  if (value.is_string()) return std::string(value.as_string());
  if (value.is_undefined()) return {};
  return to_repr(budget, value);
}

std::string to_repr(Budget& budget, const Value& value) {
  Printer printer(budget);
  printer.repr(value, 0);
  return printer.take();
}

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific)
                       .ptr;
  const std::string_view text(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::size_t mark = text.find('e');
  int exponent = 0;
  std::from_chars(text.data() + mark + (text[mark + 1] == '+' ? 2 : 1), end, exponent);
  if (exponent < -4 || exponent >= 16) return std::string(text);

  std::string digits;
  for (const char c : text.substr(0, mark)) {
    if (c >= '0' && c <= '9') digits.push_back(c);
  }
  std::string result = text.front() == '-' ? "-" : "";
  if (exponent < 0) {
    return result + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  }
  const std::size_t whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole)
    return result + digits + std::string(whole - digits.size(), '0') + ".0";
  return result + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string string_repr(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string out(1, quote);
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    if (c.value == static_cast<unsigned char>(quote) || c.value == '\\') {
      out += '\\';
      out += static_cast<char>(c.value);
    } else if (c.value == '\n') {
      out += "\\n";
    } else if (c.value == '\r') {
      out += "\\r";
    } else if (c.value == '\t') {
      out += "\\t";
    } else if (is_printable(c.value)) {
      out += text.substr(at, c.length);
    } else if (c.value < 0x100) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c.value));
    } else if (c.value < 0x10000) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c.value));
    } else {
      out += fmt::format("\\U{:08x}", static_cast<unsigned>(c.value));
    }
    at += c.length;
  }
  return out + quote;
}

}  // namespace edgerunner::jinja
