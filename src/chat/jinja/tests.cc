#include <fmt/format.h>

#include <array>
#include <cmath>

#include "chat/jinja/builtins.h"
#include "chat/jinja/compare.h"
#include "chat/jinja/elements.h"
#include "chat/jinja/evaluator.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/text.h"
#include "chat/jinja/text_class.h"

namespace edgerunner::jinja {
namespace {

void no_arguments(std::string_view name, const Arguments& arguments) {
  const Parameters none(name, arguments, {});
}

template <bool wanted(const Value&)>
bool of_value(Evaluator& /*evaluator*/, const Value& value, const Arguments& arguments) {
  no_arguments("the test", arguments);
  return wanted(value);
}

template <Operator op>
bool comparison(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters parameters("the test", arguments, {"other"}, 1);
  return compare(evaluator.heap(), op, value, parameters[0]);
}

bool is_rest(Evaluator& evaluator, const Value& value, std::int64_t divisor, std::int64_t rest) {
  const Value modulo = binary(evaluator.heap(), Operator::modulo, value, Value::integer(divisor));
  return equal(evaluator.budget(), modulo, Value::integer(rest));
}

bool odd(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  no_arguments("odd", arguments);
  return is_rest(evaluator, value, 2, 1);
}

bool even(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  no_arguments("even", arguments);
  return is_rest(evaluator, value, 2, 0);
}

bool divisible_by(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters parameters("divisibleby", arguments, {"num"}, 1);
  const Value rest = binary(evaluator.heap(), Operator::modulo, value, parameters[0]);
  return equal(evaluator.budget(), rest, Value::integer(0));
}

bool is_defined(const Value& value) { return !value.is_undefined(); }
bool is_undefined(const Value& value) { return value.is_undefined(); }
bool is_none(const Value& value) { return value.is_none(); }
bool is_boolean(const Value& value) { return value.is(Kind::boolean); }
bool is_false(const Value& value) { return value.is(Kind::boolean) && !value.as_bool(); }
bool is_true(const Value& value) { return value.is(Kind::boolean) && value.as_bool(); }
bool is_integer(const Value& value) { return value.is(Kind::integer); }
bool is_float(const Value& value) { return value.is(Kind::floating); }
bool is_number(const Value& value) { return value.is_number(); }
bool is_string(const Value& value) { return value.is_string(); }
bool is_mapping(const Value& value) { return value.is(Kind::dict); }
bool is_iterable(const Value& value) { return Elements::is_iterable(value); }
bool is_escaped(const Value& value) { return value.is_string() && value.flag(); }

bool is_sequence(const Value& value) {
  return value.is_string() || value.is_sequence() || value.is(Kind::dict) ||
         value.is(Kind::range) || value.is_undefined();
}

bool is_callable(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::macro:
    case Kind::function:
    case Kind::method:
    case Kind::loop:
    case Kind::joiner:
    case Kind::block_ref:
      return true;
    default:
      return false;
  }
}

bool lower(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  no_arguments("lower", arguments);
  return is_lower_text(to_text(evaluator.budget(), value));
}

bool upper(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  no_arguments("upper", arguments);
  return is_upper_text(to_text(evaluator.budget(), value));
}

// Whether they are one object. Numbers and texts have no identity here; equal ones of a type count
// as one.
bool same_as(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters parameters("sameas", arguments, {"other"}, 1);
  const Value& other = parameters[0];
  if (value.kind() != other.kind()) return false;
  const bool by_value = value.is_number() || value.is_string() || value.is_none();
  return by_value ? equal(evaluator.budget(), value, other) : value.identity() == other.identity();
}

bool in(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters parameters("in", arguments, {"seq"}, 1);
  return contains(evaluator.heap(), parameters[0], value);
}

bool filter(Evaluator& /*evaluator*/, const Value& value, const Arguments& arguments) {
  no_arguments("filter", arguments);
  check_hashable(value);
  return value.is_string() && find_filter(value.as_string()) != nullptr;
}

bool test(Evaluator& /*evaluator*/, const Value& value, const Arguments& arguments) {
  no_arguments("test", arguments);
  check_hashable(value);
  return value.is_string() && find_test(value.as_string()) != nullptr;
}

constexpr std::array<Named<Test>, 39> kTests = {{
    {"odd", odd},
    {"even", even},
    {"divisibleby", divisible_by},
    {"defined", of_value<is_defined>},
    {"undefined", of_value<is_undefined>},
    {"filter", filter},
    {"test", test},
    {"none", of_value<is_none>},
    {"boolean", of_value<is_boolean>},
    {"false", of_value<is_false>},
    {"true", of_value<is_true>},
    {"integer", of_value<is_integer>},
    {"float", of_value<is_float>},
    {"lower", lower},
    {"upper", upper},
    {"string", of_value<is_string>},
    {"mapping", of_value<is_mapping>},
    {"number", of_value<is_number>},
    {"sequence", of_value<is_sequence>},
    {"iterable", of_value<is_iterable>},
    {"callable", of_value<is_callable>},
    {"sameas", same_as},
    {"escaped", of_value<is_escaped>},
    {"in", in},
    {"==", comparison<Operator::equal>},
    {"eq", comparison<Operator::equal>},
    {"equalto", comparison<Operator::equal>},
    {"!=", comparison<Operator::not_equal>},
    {"ne", comparison<Operator::not_equal>},
    {">", comparison<Operator::greater>},
    {"gt", comparison<Operator::greater>},
    {"greaterthan", comparison<Operator::greater>},
    {">=", comparison<Operator::greater_equal>},
    {"ge", comparison<Operator::greater_equal>},
    {"<", comparison<Operator::less>},
    {"lt", comparison<Operator::less>},
    {"lessthan", comparison<Operator::less>},
    {"<=", comparison<Operator::less_equal>},
    {"le", comparison<Operator::less_equal>},
}};

}  // namespace

Test find_test(std::string_view name) {
  const auto* const found = find_named(std::span<const Named<Test>>(kTests), name);
  return found == nullptr ? nullptr : found->call;
}

}  // namespace edgerunner::jinja
