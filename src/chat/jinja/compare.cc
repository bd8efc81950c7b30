#include "chat/jinja/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>

#include "chat/jinja/heap.h"
#include "chat/jinja/loop.h"

namespace edgerunner::jinja {
namespace {

void check_depth(int depth) {
  if (depth > kMostValueNesting) fail("a value is nested too deeply to be compared");
}

std::partial_ordering compare_numbers(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return a.as_integer() <=> b.as_integer();
  return a.as_double() <=> b.as_double();
}

bool equal_items(Budget& budget, std::span<const Value> a, std::span<const Value> b, int depth) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!equal(budget, a[i], b[i], depth + 1)) return false;
  }
  return true;
}

bool equal_dicts(Budget& budget, const Dict& a, const Dict& b, int depth) {
  if (a.size != b.size) return false;
  return std::all_of(a.entries, a.entries + a.size, [&](const Dict::Entry& entry) {
    const Dict::Entry* const other = find_entry(budget, b, entry.key);
    return other != nullptr && equal(budget, entry.value, other->value, depth + 1);
  });
}

bool equal_ranges(const Range& a, const Range& b) {
  if (a.size != b.size || a.size == 0) return a.size == b.size;
  return a.start == b.start && (a.size == 1 || a.step == b.step);
}

}  // namespace

bool equal(Budget& budget, const Value& a, const Value& b, int depth) {
  check_depth(depth);
  budget.step();
  if (a.is_number() && b.is_number()) return std::is_eq(compare_numbers(a, b));
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::undefined:
    case Kind::none:
      return true;
    case Kind::string:
      budget.step(std::min(a.as_string().size(), b.as_string().size()) / 256);
      return a.as_string() == b.as_string();
    case Kind::list:
    case Kind::tuple:
      return a.identity() == b.identity() || equal_items(budget, a.items(), b.items(), depth);
    case Kind::dict:
      return a.identity() == b.identity() ||
             equal_dicts(budget, *a.as<Dict>(), *b.as<Dict>(), depth);
    case Kind::range:
      return equal_ranges(*a.as<Range>(), *b.as<Range>());
    default:
      return a.identity() == b.identity();
  }
}

bool less(Budget& budget, const Value& a, const Value& b, int depth) {
  check_depth(depth);
  budget.step();
  if (a.is_number() && b.is_number()) return std::is_lt(compare_numbers(a, b));
  if (a.is_string() && b.is_string()) {
    budget.step(std::min(a.as_string().size(), b.as_string().size()) / 256);
    return a.as_string() < b.as_string();  // the order of UTF-8 is that of code points
  }
  if (a.is_sequence() && a.kind() == b.kind()) {
    const auto x = a.items();
    const auto y = b.items();
    for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!equal(budget, x[i], y[i], depth + 1)) return less(budget, x[i], y[i], depth + 1);
    }
    return x.size() < y.size();
  }
  for (const Value* value : {&a, &b}) {
    if (value->is_undefined()) fail(std::string(value->as<Undefined>()->message));
  }
  fail(fmt::format("'<' has no meaning between '{}' and '{}'", type_name(a), type_name(b)));
}

bool truth(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
    case Kind::integer:
      return value.as_integer() != 0;
    case Kind::floating:
      return value.as_double() != 0;
    case Kind::string:
      return !value.as_string().empty();
    case Kind::list:
    case Kind::tuple:
      return !value.items().empty();
    case Kind::dict:
      return value.as<Dict>()->size > 0;
    case Kind::view:
      return value.as<View>()->dict->size > 0;
    case Kind::range:
      return value.as<Range>()->size > 0;
    default:
      return true;
  }
}

void check_hashable(const Value& key, int depth) {
  check_depth(depth);
  if (key.is(Kind::list) || key.is(Kind::dict) || key.is(Kind::view)) {
    fail(fmt::format("a value of type '{}' can't be a key", type_name(key)));
  }
  if (!key.is(Kind::tuple)) return;
  for (const Value& item : key.items()) check_hashable(item, depth + 1);
}

Dict::Entry* find_entry(Budget& budget, const Dict& dict, const Value& key) {
  budget.step(dict.size / 16);
  for (std::size_t i = 0; i < dict.size; ++i) {
    Dict::Entry& entry = dict.entries[i];
    if (key.is_string() && entry.key.is_string()
            ? key.as_string() == entry.key.as_string()
            : key.kind() != Kind::string && equal(budget, entry.key, key)) {
      return &entry;
    }
  }
  return nullptr;
}

}  // namespace edgerunner::jinja
