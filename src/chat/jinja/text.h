#pragma once

#include <string>
#include <string_view>

#include "chat/jinja/budget.h"
#include "chat/jinja/value.h"

namespace edgerunner::jinja {

// Python's str() and repr(). Throws Failure for what prints as an address in memory.
std::string to_text(Budget& budget, const Value& value);
std::string to_repr(Budget& budget, const Value& value);

// As Python prints a float: the fewest digits that read back as it; 1e+16, 1e-05, nan, inf.
std::string float_text(double value);
std::string string_repr(std::string_view text);

struct JsonStyle {
  bool ensure_ascii = false;
  bool indented = false;
  std::string indent;  // of a level, where indented
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};

// Python's json.dumps(). Throws Failure for what it refuses.
std::string to_json(Budget& budget, const Value& value, const JsonStyle& style);

}  // namespace edgerunner::jinja
