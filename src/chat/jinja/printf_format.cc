#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "chat/jinja/compare.h"
#include "chat/jinja/formatting.h"
#include "chat/jinja/number_format.h"
#include "chat/jinja/numbers.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/text.h"
#include "chat/jinja/text_builder.h"
#include "chat/jinja/unicode.h"

namespace edgerunner::jinja {
namespace {

class PrintfFormatter {
 public:
  PrintfFormatter(Heap& heap, std::string_view format, const Value& value)
      : heap_(heap), format_(format), value_(value), out_(heap) {}

  Value run(bool markup) {
    while (at_ < format_.size()) {
      const std::size_t percent = format_.find('%', at_);
      out_ += format_.substr(at_, percent - at_);
      if (percent == std::string_view::npos) break;
      at_ = percent + 1;
      directive();
    }
    const bool all_used =
        value_.is(Kind::tuple) ? next_ == value_.items().size() : next_ > 0 || has_names();
    if (!all_used) fail("not all values were used by the format");
    return out_.value(markup);
  }

 private:
  struct Directive {
    bool left = false;
    bool zeros = false;
    std::int64_t width = 0;
    NumberFormat number;
  };

  char peek() const {
    if (at_ >= format_.size()) fail("the format ends inside a directive");
    return format_[at_];
  }

  // A dict gives its items by name; what has items at all need not be used up.
  bool has_names() const {
    return value_.is(Kind::dict) || value_.is(Kind::list) || value_.is(Kind::range) ||
           value_.is_undefined();
  }

  Value take() {
    if (!value_.is(Kind::tuple)) {
      if (next_++ > 0) fail("there are not enough values for the format");
      return value_;
    }
    if (next_ == value_.items().size()) fail("there are not enough values for the format");
    return value_.items()[next_++];
  }

  Value named() {
    ++at_;
    std::size_t depth = 1;
    const std::size_t begin = at_;
    for (; depth > 0; ++at_) {
      if (peek() == '(') ++depth;
      if (peek() == ')') --depth;
    }
    if (!value_.is(Kind::dict)) fail("a format with names needs a dict");
    const std::string_view name = format_.substr(begin, at_ - 1 - begin);
    const Dict::Entry* const entry =
        find_entry(heap_.budget(), *value_.as<Dict>(), Value::string(name));
    if (entry == nullptr) fail(fmt::format("the format's '{}' is missing", name));
    return entry->value;
  }

  std::int64_t number() {
    if (peek() == '*') {
      ++at_;
      const Value given = take();
      if (!given.is_integral()) fail("'*' in a format needs an integer");
      return given.as_integer();
    }
    std::int64_t value = 0;
    const auto result =
        std::from_chars(format_.data() + at_, format_.data() + format_.size(), value);
    if (result.ec == std::errc::result_out_of_range) fail("a width in the format is too large");
    at_ = static_cast<std::size_t>(result.ptr - format_.data());
    return value;
  }

  void directive() {
    std::optional<Value> by_name;
    if (peek() == '(') by_name = named();
    Directive wanted;
    for (bool more = true; more;) {
      switch (peek()) {
        case '-':
          wanted.left = true;
          break;
        case '+':
          wanted.number.sign = '+';
          break;
        case ' ':
          if (wanted.number.sign == '-') wanted.number.sign = ' ';
          break;
        case '#':
          wanted.number.alternate = true;
          break;
        case '0':
          wanted.zeros = true;
          break;
        default:
          more = false;
      }
      if (more) ++at_;
    }
    wanted.width = number();
    if (wanted.width < 0) {
      wanted.left = true;
      wanted.width = -wanted.width;
    }
    if (peek() == '.') {
      ++at_;
      const std::int64_t digits = number();
      wanted.number.precision = static_cast<int>(std::clamp<std::int64_t>(digits, 0, 1 << 30));
    }
    while (peek() == 'h' || peek() == 'l' || peek() == 'L') ++at_;
    const char type = format_[at_++];
    if (type == '%') {
      out_ += "%";
      return;
    }
    convert(type, by_name ? *by_name : take(), wanted);
  }

  void convert(char type, const Value& value, Directive& wanted) {
    switch (type) {
      case 's':
      case 'r':
      case 'a': {
        std::string text =
            type == 's' ? to_text(heap_.budget(), value) : to_repr(heap_.budget(), value);
        if (type == 'a' && !is_ascii(text)) fail_unsupported("%a of what is not ASCII");
        if (wanted.number.precision) {
          text.resize(byte_offset(text, static_cast<std::size_t>(*wanted.number.precision)));
        }
        return put("", text, wanted, false);
      }
      case 'c':
        return character(value, wanted);
      case 'd':
      case 'i':
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        return integer(type, value, wanted);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G': {
        if (!value.is_number()) fail(fmt::format("%{} needs a number", type));
        wanted.number.type = type;
        const FormattedNumber made = format_number(value, wanted.number);
        return put(made.prefix, made.digits, wanted, std::isfinite(value.as_double()));
      }
      default:
        fail(fmt::format("'%{}' is no directive of a format", type));
    }
  }

  void character(const Value& value, const Directive& wanted) {
    std::string text;
    if (value.is_integral()) {
      const std::int64_t point = value.as_integer();
      if (point < 0 || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) {
        fail("%c needs a character");
      }
      const auto c = static_cast<char32_t>(point);
      text = encode({&c, 1});
    } else if (value.is_string() && count_code_points(value.as_string()) == 1) {
      text = value.as_string();
    } else {
      fail("%c needs a character");
    }
    put("", text, wanted, false);
  }

  void integer(char type, const Value& value, Directive& wanted) {
    const bool decimal = type == 'd' || type == 'i' || type == 'u';
    Value whole = value;
    if (decimal && value.is(Kind::floating)) whole = Value::integer(truncate(value.as_double()));
    if (!whole.is_integral()) {
      fail(fmt::format("%{} needs a number, not '{}'", type, type_name(value)));
    }
    wanted.number.type = decimal ? 'd' : type;
    FormattedNumber made = format_number(whole, wanted.number);
    const auto digits = static_cast<std::size_t>(wanted.number.precision.value_or(0));
    if (made.digits.size() < digits) {
      heap_.budget().take(digits);
      made.digits.insert(0, digits - made.digits.size(), '0');
    }
    put(made.prefix, made.digits, wanted, true);
  }

  void put(std::string_view prefix, std::string_view text, const Directive& wanted, bool numeric) {
    const std::size_t length = count_code_points(prefix) + count_code_points(text);
    const auto width = static_cast<std::size_t>(wanted.width);
    const std::size_t padding = width > length ? width - length : 0;
    const bool zeros = wanted.zeros && !wanted.left && numeric;
    if (!wanted.left && !zeros) out_.repeat(" ", padding);
    out_ += prefix;
    if (zeros) out_.repeat("0", padding);
    out_ += text;
    if (wanted.left) out_.repeat(" ", padding);
  }

  Heap& heap_;
  std::string_view format_;
  const Value& value_;
  TextBuilder out_;
  std::size_t at_ = 0;
  std::size_t next_ = 0;
};

}  // namespace

Value printf_format(Heap& heap, const Value& format, const Value& value) {
  return PrintfFormatter(heap, format.as_string(), value).run(format.flag());
}

}  // namespace edgerunner::jinja
