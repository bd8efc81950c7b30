#include "chat/jinja/number_format.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdio>

#include "chat/jinja/heap.h"
#include "chat/jinja/numbers.h"
#include "chat/jinja/text.h"

namespace edgerunner::jinja {
namespace {

constexpr int kMostDigits = 1000;

std::string group(const std::string& digits, char separator, std::size_t size) {
  const std::size_t whole = std::min(digits.find_first_of(".e"), digits.size());
  std::string result;
  for (std::size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % size == 0) result += separator;
    result += digits[i];
  }
  return result + digits.substr(whole);
}

std::string integer_digits(std::uint64_t value, char type) {
  switch (type) {
    case 'b':
      return fmt::format("{:b}", value);
    case 'o':
      return fmt::format("{:o}", value);
    case 'x':
      return fmt::format("{:x}", value);
    case 'X':
      return fmt::format("{:X}", value);
    default:
      return fmt::to_string(value);
  }
}

std::string float_digits(double value, const NumberFormat& format) {
  const bool upper = format.type == 'E' || format.type == 'F' || format.type == 'G';
  if (!std::isfinite(value)) {
    const std::string text = std::isnan(value) ? "nan" : "inf";
    return upper ? (text == "nan" ? "NAN" : "INF") : text + (format.type == '%' ? "%" : "");
  }
  if (format.type == 'r' && !format.precision) return float_text(value);
  const int precision = format.precision.value_or(6);
  if (precision > kMostDigits) fail_unsupported("formats of more than 1000 digits");
  char type = format.type == '%' ? 'f' : format.type;
  if (type == 'r') type = 'g';
  const std::string pattern = fmt::format("%{}.*{}", format.alternate ? "#" : "", type);
  const double shown = format.type == '%' ? value * 100 : value;
  std::array<char, 2048> buffer{};
  const int written =
      std::snprintf(buffer.data(), buffer.size(), pattern.c_str(), precision, shown);
  std::string digits(buffer.data(), static_cast<std::size_t>(written));
  if (format.type == '%') digits += '%';
  // Without a type, a number that has no exponent keeps a digit behind its point.
  if (format.type == 'r' && digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return digits;
}

}  // namespace

FormattedNumber format_number(const Value& value, const NumberFormat& format) {
  FormattedNumber result;
  const bool integer_type = std::string_view("dboxX").find(format.type) != std::string_view::npos;
  bool negative = false;
  if (integer_type) {
    const std::int64_t number = value.as_integer();
    negative = number < 0;
    const auto magnitude =
        negative ? -static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
    result.digits = integer_digits(magnitude, format.type);
    if (format.grouping != 0) {
      result.digits = group(result.digits, format.grouping, format.type == 'd' ? 3 : 4);
    }
  } else {
    const double number = value.as_double();
    negative = std::signbit(number) && !std::isnan(number);
    result.digits = float_digits(std::abs(number), format);
    if (format.grouping != 0) result.digits = group(result.digits, format.grouping, 3);
  }
  if (negative) {
    result.prefix.assign(1, '-');
  } else if (format.sign != '-') {
    result.prefix.assign(1, format.sign);
  }
  if (integer_type && format.alternate && format.type != 'd') {
    result.prefix += fmt::format("0{}", format.type);
  }
  return result;
}

}  // namespace edgerunner::jinja
