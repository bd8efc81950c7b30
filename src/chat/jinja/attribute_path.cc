#include "chat/jinja/attribute_path.h"

#include <charconv>

#include "chat/jinja/operators.h"
#include "chat/jinja/text_class.h"
#include "chat/jinja/unicode.h"

namespace edgerunner::jinja {
namespace {

Value path_part(Evaluator& evaluator, std::string_view part) {
  if (!all_of_class(part, is_digit)) return evaluator.heap().string(part);
  std::int64_t index = 0;
  const auto result = std::from_chars(part.data(), part.data() + part.size(), index);
  if (result.ec != std::errc{}) fail_integer_range();
  return Value::integer(index);
}

}  // namespace

AttributePath::AttributePath(Evaluator& evaluator, const Value& attribute) {
  if (attribute.is_none()) return;
  if (!attribute.is_string()) {
    parts_.push_back(attribute);
    return;
  }
  std::string_view rest = attribute.as_string();
  while (true) {
    const std::size_t dot = rest.find('.');
    parts_.push_back(path_part(evaluator, rest.substr(0, dot)));
    if (dot == std::string_view::npos) return;
    rest.remove_prefix(dot + 1);
  }
}

Value AttributePath::of(Evaluator& evaluator, const Value& item, const Value& fallback) const {
  Value value = item;
  for (const Value& part : parts_) {
    value = evaluator.item(value, part);
    if (value.is_undefined() && !fallback.is_none()) value = fallback;
  }
  return value;
}

Value without_case(Evaluator& evaluator, const Value& value) {
  return value.is_string() ? evaluator.heap().string(to_lower(value.as_string())) : value;
}

}  // namespace edgerunner::jinja
