#include "chat/jinja/operators.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "chat/jinja/compare.h"
#include "chat/jinja/elements.h"
#include "chat/jinja/formatting.h"
#include "chat/jinja/html.h"
#include "chat/jinja/unicode.h"

namespace edgerunner::jinja {
namespace {

constexpr std::array<std::string_view, 15> kSigns = {
    "+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};

[[noreturn]] void fail_types(Operator op, const Value& left, const Value& right) {
  for (const Value* value : {&left, &right}) {
    if (value->is_undefined()) fail(std::string(value->as<Undefined>()->message));
  }
  fail(fmt::format("'{}' has no meaning between '{}' and '{}'",
                   kSigns[static_cast<std::size_t>(op)], type_name(left), type_name(right)));
}

Value power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) fail("0 can't be raised to a negative power");
    return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  }
  std::int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) fail_integer_range();
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) fail_integer_range();
  }
  return Value::integer(result);
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) fail("division by zero");
  if (b == -1) {
    if (a == std::numeric_limits<std::int64_t>::min()) fail_integer_range();
    return -a;
  }
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

Value integers(Operator op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case Operator::add:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case Operator::subtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case Operator::multiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case Operator::divide:
      if (b == 0) fail("division by zero");
      return static_cast<double>(a) / static_cast<double>(b);
    case Operator::floor_divide:
      return Value::integer(floor_divide(a, b));
    case Operator::modulo:
      if (b == -1) return Value::integer(0);
      return Value::integer(a - floor_divide(a, b) * b);
    default:
      return power(a, b);
  }
  if (overflow) fail_integer_range();
  return Value::integer(result);
}

double modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

// As CPython's float_floor_div: exact where a / b, rounded, would already be the next integer.
double floor_divide(double a, double b) {
  const double quotient = (a - modulo(a, b)) / b;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floor = std::floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

Value doubles(Operator op, double a, double b) {
  if (b == 0 &&
      (op == Operator::divide || op == Operator::floor_divide || op == Operator::modulo)) {
    fail("division by zero");
  }
  switch (op) {
    case Operator::add:
      return a + b;
    case Operator::subtract:
      return a - b;
    case Operator::multiply:
      return a * b;
    case Operator::divide:
      return a / b;
    case Operator::floor_divide:
      return floor_divide(a, b);
    case Operator::modulo:
      return modulo(a, b);
    default:
      break;
  }
  if (a == 0 && b < 0) fail("0 can't be raised to a negative power");
  const double result = std::pow(a, b);
  if (a < 0 && std::floor(b) != b) fail_unsupported("complex numbers");
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b))
    fail("the result is out of range");
  return result;
}

Value repeat(Heap& heap, const Value& value, std::int64_t times) {
  const std::size_t count = times > 0 ? static_cast<std::size_t>(times) : 0;
  if (value.is_string()) {
    const std::string_view text = value.as_string();
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(text.size(), count, &bytes)) bytes = SIZE_MAX;
    char* const made = heap.budget().array<char>(bytes);
    for (std::size_t i = 0; i < bytes; i += text.size()) text.copy(made + i, text.size());
    return Value::string({made, bytes}, value.flag());
  }
  const auto items = value.items();
  std::size_t size = 0;
  if (__builtin_mul_overflow(items.size(), count, &size)) size = SIZE_MAX;
  List list{.items = heap.budget().array<Value>(size), .size = size};
  for (std::size_t i = 0; i < size; i += items.size()) {
    std::uninitialized_copy(items.begin(), items.end(), list.items + i);
  }
  return Value::object(value.kind(), heap.make(list));
}

Value add_strings(Heap& heap, const Value& left, const Value& right) {
  if (left.flag() == right.flag()) {
    return heap.join(left.as_string(), right.as_string(), left.flag());
  }
  // Markup takes the other side in as text.
  const std::string escaped = escape_html(left.flag() ? right.as_string() : left.as_string());
  return left.flag() ? heap.join(left.as_string(), escaped, true)
                     : heap.join(escaped, right.as_string(), true);
}

// A bound of a slice, or nothing where its type is none that can be one.
struct Bound {
  bool good = true;
  std::optional<std::int64_t> value;
  explicit Bound(const Value& given) {
    if (given.is_integral()) {
      value = given.as_integer();
    } else {
      good = given.is_none();
    }
  }
};

// The indices that a slice takes, in their order: Python's slice.indices.
struct Indices {
  std::int64_t start;
  std::int64_t step;
  std::size_t count;
};

Indices indices(std::int64_t size, const Bound& begin, const Bound& end, std::int64_t step) {
  const auto clamp = [&](std::int64_t i) {
    if (i < 0) i += size;
    if (i < 0) return step < 0 ? std::int64_t{-1} : std::int64_t{0};
    if (i >= size) return step < 0 ? size - 1 : size;
    return i;
  };
  const std::int64_t from = begin.value ? clamp(*begin.value) : step < 0 ? size - 1 : 0;
  const std::int64_t to = end.value ? clamp(*end.value) : step < 0 ? -1 : size;
  const std::int64_t distance = step > 0 ? to - from : from - to;
  const std::uint64_t stride =
      step > 0 ? static_cast<std::uint64_t>(step) : -static_cast<std::uint64_t>(step);
  const std::uint64_t count =
      distance <= 0 ? 0 : (static_cast<std::uint64_t>(distance) - 1) / stride + 1;
  return {.start = from, .step = step, .count = count};
}

Value slice_string(Heap& heap, const Value& object, const Indices& taken,
                   const std::u32string* points) {
  const std::string_view text = object.as_string();
  if (taken.step == 1) {
    const std::size_t begin = byte_offset(text, static_cast<std::size_t>(taken.start));
    const std::string_view rest = text.substr(begin);
    return Value::string(rest.substr(0, byte_offset(rest, taken.count)), object.flag());
  }
  std::u32string picked;
  for (std::size_t i = 0; i < taken.count; ++i) {
    picked.push_back((*points)[static_cast<std::size_t>(taken.start + static_cast<std::int64_t>(i) *
                                                                          taken.step)]);
  }
  return heap.string(encode(picked), object.flag());
}

}  // namespace

void fail_integer_range() { fail_unsupported("integers beyond 64 bits"); }

Value add(Heap& heap, const Value& left, const Value& right) {
  if (left.is_string() && right.is_string()) return add_strings(heap, left, right);
  if (left.is_sequence() && left.kind() == right.kind()) {
    const auto a = left.items();
    const auto b = right.items();
    List list{.items = heap.budget().array<Value>(a.size() + b.size()),
              .size = a.size() + b.size()};
    std::uninitialized_copy(b.begin(), b.end(),
                            std::uninitialized_copy(a.begin(), a.end(), list.items));
    return Value::object(left.kind(), heap.make(list));
  }
  return binary(heap, Operator::add, left, right);
}

Value binary(Heap& heap, Operator op, const Value& left, const Value& right) {
  heap.budget().step();
  if (left.is_integral() && right.is_integral()) {
    return integers(op, left.as_integer(), right.as_integer());
  }
  if (left.is_number() && right.is_number()) {
    return doubles(op, left.as_double(), right.as_double());
  }
  const bool joins = (left.is_string() && right.is_string()) ||
                     (left.is_sequence() && left.kind() == right.kind());
  if (op == Operator::add && joins) return add(heap, left, right);
  if (op == Operator::multiply) {
    if ((left.is_string() || left.is_sequence()) && right.is_integral()) {
      return repeat(heap, left, right.as_integer());
    }
    if ((right.is_string() || right.is_sequence()) && left.is_integral()) {
      return repeat(heap, right, left.as_integer());
    }
  }
  if (op == Operator::modulo && left.is_string()) {
    return printf_format(heap, left, right);
  }
  fail_types(op, left, right);
}

Value with_sign(const Value& value, bool negative) {
  if (value.is_integral()) {
    return negative ? integers(Operator::subtract, 0, value.as_integer())
                    : Value::integer(value.as_integer());
  }
  if (value.is(Kind::floating)) return negative ? -value.as_double() : value;
  if (value.is_undefined()) fail(std::string(value.as<Undefined>()->message));
  fail(fmt::format("a value of type '{}' has no sign", type_name(value)));
}

bool contains(Heap& heap, const Value& container, const Value& item) {
  Budget& budget = heap.budget();
  if (container.is_string()) {
    if (!item.is_string()) {
      if (item.is_undefined()) fail(std::string(item.as<Undefined>()->message));
      fail(fmt::format("'in' a string needs a string, not '{}'", type_name(item)));
    }
    budget.step(container.as_string().size() / 64);
    return find_text(container.as_string(), item.as_string()) != std::string_view::npos;
  }
  if (container.is(Kind::dict)) {
    check_hashable(item);
    return find_entry(budget, *container.as<Dict>(), item) != nullptr;
  }
  if (!Elements::is_iterable(container)) {
    fail(fmt::format("nothing can be 'in' a value of type '{}'", type_name(container)));
  }
  if (container.is(Kind::iterator)) {  // used up to where the item was found
    Iterator& iterator = *container.as<Iterator>();
    while (iterator.next < iterator.list.size) {
      if (equal(budget, iterator.list.items[iterator.next++], item)) return true;
    }
    return false;
  }
  const Elements elements(heap, container);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (equal(budget, elements.at(heap, i), item)) return true;
  }
  return false;
}

bool compare(Heap& heap, Operator op, const Value& left, const Value& right) {
  Budget& budget = heap.budget();
  switch (op) {
    case Operator::equal:
      return equal(budget, left, right);
    case Operator::not_equal:
      return !equal(budget, left, right);
    case Operator::in:
      return contains(heap, right, left);
    case Operator::not_in:
      return !contains(heap, right, left);
    default:
      break;
  }
  const bool unordered = left.is_number() && right.is_number() &&
                         (std::isnan(left.as_double()) || std::isnan(right.as_double()));
  if (unordered) return false;
  switch (op) {
    case Operator::less:
      return less(budget, left, right);
    case Operator::less_equal:
      return !less(budget, right, left);
    case Operator::greater:
      return less(budget, right, left);
    default:
      return !less(budget, left, right);
  }
}

Value slice(Heap& heap, const Value& object, const Value& begin, const Value& end,
            const Value& step) {
  if (object.is_undefined()) fail(std::string(object.as<Undefined>()->message));
  const Bound first(begin);
  const Bound last(end);
  const Bound stride(step);
  const bool sliceable = object.is_string() || object.is_sequence() || object.is(Kind::range);
  if (!sliceable || !first.good || !last.good || !stride.good) {
    fail(fmt::format("a value of type '{}' has no such slice", type_name(object)));
  }
  if (stride.value == 0) fail("the step of a slice can't be 0");
  const std::int64_t every = stride.value.value_or(1);
  if (object.is_string()) heap.budget().step(object.as_string().size() / 64);
  if (object.is_string() && every != 1) {
    const std::u32string points = decode(object.as_string());
    heap.budget().step(points.size() / 16);
    const auto size = static_cast<std::int64_t>(points.size());
    return slice_string(heap, object, indices(size, first, last, every), &points);
  }
  const auto size = static_cast<std::int64_t>(length(object));
  const Indices taken = indices(size, first, last, every);
  heap.budget().step(taken.count / 16);
  if (object.is_string()) return slice_string(heap, object, taken, nullptr);
  if (object.is(Kind::range)) {
    const Range& range = *object.as<Range>();
    const std::int64_t start = range.start + taken.start * range.step;
    const std::int64_t stride_of_range = taken.count > 1 ? range.step * taken.step : 1;
    const auto count = static_cast<std::int64_t>(taken.count);
    return Value::object(Kind::range, heap.make(Range{.start = start,
                                                      .stop = start + count * stride_of_range,
                                                      .step = stride_of_range,
                                                      .size = taken.count}));
  }
  List list{.items = heap.budget().array<Value>(taken.count), .size = taken.count};
  for (std::size_t i = 0; i < taken.count; ++i) {
    const std::int64_t from = taken.start + static_cast<std::int64_t>(i) * taken.step;
    new (list.items + i) Value(object.items()[static_cast<std::size_t>(from)]);
  }
  return Value::object(object.kind(), heap.make(list));
}

}  // namespace edgerunner::jinja
