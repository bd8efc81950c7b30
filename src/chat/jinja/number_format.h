#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "chat/jinja/value.h"

namespace edgerunner::jinja {

// What a format asks of a number.
struct NumberFormat {
  char type = 'd';  // d b o x X c e E f F g G %, or 'r' for the shortest that reads back
  char sign = '-';  // '-', '+' or ' '
  bool alternate = false;
  std::optional<int> precision;
  char grouping = 0;  // ',' or '_' between thousands
};

// The sign (and prefix) and the digits of a number, apart, so that zeros can stand between them.
struct FormattedNumber {
  std::string prefix;
  std::string digits;
};
FormattedNumber format_number(const Value& value, const NumberFormat& format);

}  // namespace edgerunner::jinja
