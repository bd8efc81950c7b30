#include <fmt/format.h>

#include <array>
#include <cmath>

#include "chat/jinja/builtins.h"
#include "chat/jinja/compare.h"
#include "chat/jinja/elements.h"
#include "chat/jinja/evaluator.h"
#include "chat/jinja/numbers.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/text.h"

namespace edgerunner::jinja {
namespace {

Value default_value(Evaluator& /*evaluator*/, const Value& value, const Arguments& arguments) {
  const Parameters parameters("default", arguments, {"default_value", "boolean"});
  if (!value.is_undefined() && (!parameters.truth(1) || truth(value))) return value;
  return parameters.has(0) ? parameters[0] : Value::string("");
}

Value count(Evaluator& /*evaluator*/, const Value& value, const Arguments& arguments) {
  const Parameters none("length", arguments, {});
  return Value::integer(static_cast<std::int64_t>(length(value)));
}

Value attr(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters parameters("attr", arguments, {"name"}, 1);
  if (value.is_undefined()) fail(std::string(value.as<Undefined>()->message));
  const std::string name = to_text(evaluator.budget(), parameters[0]);
  Value storage;
  const Value* const found =
      evaluator.python_attribute(value, evaluator.heap().string(name).as_string(), storage);
  return found != nullptr ? *found
                          : evaluator.heap().undefined(fmt::format("there is no '{}'", name));
}

Value items(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters none("items", arguments, {});
  Heap& heap = evaluator.heap();
  if (value.is_undefined()) return heap.iterator({});
  if (!value.is(Kind::dict)) fail("items needs a dict");
  const Value view =
      Value::object(Kind::view, heap.make(View{value.as<Dict>(), View::Part::items}));
  const List all = Elements(heap, view).all(heap);
  return heap.iterator({all.items, all.size});
}

Value abs(Evaluator& /*evaluator*/, const Value& value, const Arguments& arguments) {
  const Parameters none("abs", arguments, {});
  if (value.is(Kind::floating)) return std::abs(value.as_double());
  if (value.is_integral()) return with_sign(value, value.as_integer() < 0);
  if (value.is_undefined()) fail(std::string(value.as<Undefined>()->message));
  fail(fmt::format("abs needs a number, not '{}'", type_name(value)));
}

Value to_integer(Evaluator& /*evaluator*/, const Value& value, const Arguments& arguments) {
  const Parameters parameters("int", arguments, {"default", "base"});
  const Value fallback = parameters.has(0) ? parameters[0] : Value::integer(0);
  if (value.is_integral()) return Value::integer(value.as_integer());
  if (value.is_undefined()) fail(std::string(value.as<Undefined>()->message));
  double number = 0;
  if (value.is(Kind::floating)) {
    number = value.as_double();
  } else if (value.is_string()) {
    const auto integer = parse_integer(value.as_string(), parameters.integer(1, 10));
    if (integer) return Value::integer(*integer);
    const auto floating = parse_float(value.as_string());
    if (!floating) return fallback;
    number = *floating;
  } else {
    return fallback;
  }
  if (std::isnan(number)) return fallback;
  return Value::integer(truncate(number));
}

Value to_float(Evaluator& /*evaluator*/, const Value& value, const Arguments& arguments) {
  const Parameters parameters("float", arguments, {"default"});
  if (value.is_number()) return value.as_double();
  if (value.is_undefined()) fail(std::string(value.as<Undefined>()->message));
  if (value.is_string()) {
    if (const auto parsed = parse_float(value.as_string())) return *parsed;
  }
  return parameters.has(0) ? parameters[0] : Value(0.0);
}

Value round(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters parameters("round", arguments, {"precision", "method"});
  const std::string_view method = parameters.text(1, "common");
  const std::int64_t precision = parameters.integer(0);
  if (value.is_undefined()) fail(std::string(value.as<Undefined>()->message));
  if (!value.is_number()) fail(fmt::format("round needs a number, not '{}'", type_name(value)));
  if (method == "common") return round_number(value, precision);
  if (method != "ceil" && method != "floor") fail("the method of round is common, ceil or floor");
  Heap& heap = evaluator.heap();
  const Value unit = binary(heap, Operator::power, Value::integer(10), Value::integer(precision));
  const Value scaled = binary(heap, Operator::multiply, value, unit);
  const double whole =
      method == "ceil" ? std::ceil(scaled.as_double()) : std::floor(scaled.as_double());
  return binary(heap, Operator::divide, Value::integer(truncate(whole)), unit);
}

Value tojson(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters parameters("tojson", arguments,
                              {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = parameters.truth(0);
  style.sort_keys = parameters.truth(3);
  if (!parameters.is_none(1)) {
    style.indented = true;
    style.item_separator.assign(1, ',');
    if (parameters[1].is_string()) {
      style.indent = parameters[1].as_string();
    } else if (const std::int64_t width = parameters.integer(1); width > 0) {
      evaluator.budget().take(static_cast<std::size_t>(width));
      style.indent.assign(static_cast<std::size_t>(width), ' ');
    }
  }
  if (!parameters.is_none(2)) {
    const List both = Elements(evaluator.heap(), parameters[2]).all(evaluator.heap());
    if (both.size != 2 || !both.items[0].is_string() || !both.items[1].is_string()) {
      fail("tojson: 'separators' must be two strings");
    }
    style.item_separator = both.items[0].as_string();
    style.key_separator = both.items[1].as_string();
  }
  return evaluator.heap().string(to_json(evaluator.budget(), value, style));
}

// What fits into one line of Python's pprint.
Value pprint(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters none("pprint", arguments, {});
  const bool has_parts = value.is_sequence() || value.is(Kind::dict);
  const std::string text = to_repr(evaluator.budget(), value);
  if (has_parts || text.size() > 80) fail_unsupported("pprint of what takes several lines");
  return evaluator.heap().string(text);
}

Value random(Evaluator& /*evaluator*/, const Value& /*value*/, const Arguments& /*arguments*/) {
  fail_unsupported("the filter random");
}

constexpr std::array<Named<Filter>, 13> kFilters = {{
    {"default", default_value},
    {"d", default_value},
    {"length", count},
    {"count", count},
    {"attr", attr},
    {"items", items},
    {"abs", abs},
    {"int", to_integer},
    {"float", to_float},
    {"round", round},
    {"tojson", tojson},
    {"pprint", pprint},
    {"random", random},
}};

}  // namespace

std::span<const Named<Filter>> value_filters() { return kFilters; }

}  // namespace edgerunner::jinja
