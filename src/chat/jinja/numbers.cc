#include "chat/jinja/numbers.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "chat/jinja/heap.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/unicode.h"

namespace edgerunner::jinja {
namespace {

// Without single underscores between digits; nothing where one stands elsewhere.
std::optional<std::string> without_underscores(std::string_view text) {
  const auto is_digit_char = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0;
  };
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      plain += text[i];
    } else if (i == 0 || i + 1 == text.size() || !is_digit_char(text[i - 1]) ||
               !is_digit_char(text[i + 1])) {
      return std::nullopt;
    }
  }
  return plain;
}

// Of an integer to a multiple of 10^digits, halves to the even one.
std::int64_t round_integer(std::int64_t value, std::int64_t digits) {
  if (digits > 18) return 0;
  std::int64_t unit = 1;
  for (; digits > 0; --digits) unit *= 10;
  std::int64_t rest = value % unit;
  if (rest < 0) rest += unit;
  const std::int64_t below = value - rest;
  const bool even = below / unit % 2 == 0;
  const bool up = rest > unit - rest || (rest == unit - rest && !even);
  std::int64_t result = below;
  if (up && __builtin_add_overflow(below, unit, &result)) fail_integer_range();
  return result;
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text, std::int64_t base) {
  if (base != 0 && (base < 2 || base > 36)) fail("the base of an integer must be 0, or 2 to 36");
  text = strip(text, true, true, is_space);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.size() > 1 && text[0] == '0') {
    const char kind = static_cast<char>(text[1] | 0x20);
    const std::int64_t prefix = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
    if (prefix != 0 && (base == prefix || base == 0)) {
      base = prefix;
      text.remove_prefix(2);
      if (text.starts_with('_')) text.remove_prefix(1);
    } else if (base == 0 && text.find_first_not_of("0_") != std::string_view::npos) {
      return std::nullopt;  // "012"
    }
  }
  if (base == 0) base = 10;
  const auto plain = without_underscores(text);
  if (!plain || plain->empty() || plain->front() == '-' || plain->front() == '+') {
    return std::nullopt;
  }
  std::int64_t value = 0;
  const std::string digits = (negative ? "-" : "") + *plain;
  const char* const end = digits.data() + digits.size();
  const auto result = std::from_chars(digits.data(), end, value, static_cast<int>(base));
  if (result.ptr != end) return std::nullopt;
  if (result.ec == std::errc::result_out_of_range) fail_integer_range();
  return value;
}

std::optional<double> parse_float(std::string_view text) {
  text = strip(text, true, true, is_space);
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  const auto plain = without_underscores(text);
  if (!plain || plain->empty()) return std::nullopt;
  if (plain->find_first_of("xX(") != std::string::npos) return std::nullopt;  // hexadecimal
  double value = 0;
  const char* const end = plain->data() + plain->size();
  const auto result = std::from_chars(plain->data(), end, value);
  if (result.ptr != end) return std::nullopt;
  // Out of range: strtod gives the infinity or the zero that Python does.
  return result.ec == std::errc{} ? value : std::strtod(plain->c_str(), nullptr);
}

std::string fixed_digits(double value, int digits) { return fmt::format("{:.{}f}", value, digits); }

std::int64_t truncate(double value) {
  if (std::isnan(value) || std::isinf(value)) fail("infinity and 'not a number' are no integers");
  if (std::abs(value) >= 9.2233720368547758e18) fail_integer_range();
  return static_cast<std::int64_t>(value);
}

Value round_number(const Value& value, std::int64_t digits) {
  if (value.is_integral()) {
    return Value::integer(digits >= 0 ? value.as_integer()
                                      : round_integer(value.as_integer(), -digits));
  }
  const double number = value.as_double();
  if (!std::isfinite(number) || digits > 323) return number;
  if (digits >= 0) {
    return std::strtod(fixed_digits(number, static_cast<int>(digits)).c_str(), nullptr);
  }
  if (digits < -308) return std::copysign(0.0, number);
  const double unit = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(number / unit) * unit;
}

}  // namespace edgerunner::jinja
