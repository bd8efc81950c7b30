#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "chat/jinja/value.h"

namespace edgerunner::jinja {

// Python's int(text, base) and float(text); nothing where it raises ValueError.
std::optional<std::int64_t> parse_integer(std::string_view text, std::int64_t base);
std::optional<double> parse_float(std::string_view text);

// Python's round(value, digits).
Value round_number(const Value& value, std::int64_t digits);

// The integer that a float is cut down to. Throws Failure beyond 64 bits.
std::int64_t truncate(double value);

// A float with a fixed number of digits after the point.
std::string fixed_digits(double value, int digits);

}  // namespace edgerunner::jinja
