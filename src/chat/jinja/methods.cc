#include "chat/jinja/methods.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "chat/jinja/compare.h"
#include "chat/jinja/elements.h"
#include "chat/jinja/evaluator.h"
#include "chat/jinja/text_class.h"
#include "chat/jinja/unicode.h"

namespace edgerunner::jinja {
namespace {

template <bool is_member(char32_t)>
Value of_class(Evaluator& /*evaluator*/, const Value& self, const Arguments& arguments) {
  const Parameters none("the method", arguments, {});
  return all_of_class(self.as_string(), is_member);
}

template <bool holds(std::string_view)>
Value of_text(Evaluator& /*evaluator*/, const Value& self, const Arguments& arguments) {
  const Parameters none("the method", arguments, {});
  return holds(self.as_string());
}

bool is_alphanumeric(char32_t c) {
  return is_alpha(c) || is_decimal(c) || is_digit(c) || is_numeric(c);
}
bool is_printable_text(std::string_view text) {
  return text.empty() || all_of_class(text, is_printable);
}

constexpr std::array<Named<Filter>, 12> kClassMethods = {{
    {"isalpha", of_class<is_alpha>},
    {"isdigit", of_class<is_digit>},
    {"isdecimal", of_class<is_decimal>},
    {"isnumeric", of_class<is_numeric>},
    {"isalnum", of_class<is_alphanumeric>},
    {"isspace", of_class<is_space>},
    {"isupper", of_text<is_upper_text>},
    {"islower", of_text<is_lower_text>},
    {"istitle", of_text<is_title_text>},
    {"isidentifier", of_text<is_identifier>},
    {"isascii", of_text<is_ascii>},
    {"isprintable", of_text<is_printable_text>},
}};

Value dict_get(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Parameters parameters("get", arguments, {"key", "default"}, 1);
  check_hashable(parameters[0]);
  const Dict::Entry* const entry = find_entry(evaluator.budget(), *self.as<Dict>(), parameters[0]);
  if (entry != nullptr) return entry->value;
  return parameters.has(1) ? parameters[1] : Value();
}

template <View::Part part>
Value dict_view(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Parameters none("the method", arguments, {});
  return Value::object(Kind::view, evaluator.heap().make(View{self.as<Dict>(), part}));
}

Value dict_copy(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Parameters none("copy", arguments, {});
  Dict* const copy = evaluator.heap().dict(self.as<Dict>()->size);
  for (const auto& [key, value] : self.as<Dict>()->all())
    evaluator.heap().append(*copy, key, value);
  return Value::object(Kind::dict, copy);
}

constexpr std::array<Named<Filter>, 5> kDictMethods = {{
    {"get", dict_get},
    {"items", dict_view<View::Part::items>},
    {"keys", dict_view<View::Part::keys>},
    {"values", dict_view<View::Part::values>},
    {"copy", dict_copy},
}};

Value sequence_index(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Parameters parameters("index", arguments, {"value", "start", "stop"}, 1);
  const Elements elements(evaluator.heap(), self);
  const auto size = static_cast<std::int64_t>(elements.size());
  const auto position = [&](std::size_t i, std::int64_t fallback) {
    const std::int64_t at = parameters.integer(i, fallback);
    return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size);
  };
  for (std::int64_t i = position(1, 0); i < position(2, size); ++i) {
    if (equal(evaluator.budget(), elements.at(evaluator.heap(), static_cast<std::size_t>(i)),
              parameters[0])) {
      return Value::integer(i);
    }
  }
  fail("the value is not in the list");
}

Value sequence_count(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Parameters parameters("count", arguments, {"value"}, 1);
  const Elements elements(evaluator.heap(), self);
  std::int64_t found = 0;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (equal(evaluator.budget(), elements.at(evaluator.heap(), i), parameters[0])) ++found;
  }
  return Value::integer(found);
}

Value list_copy(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Parameters none("copy", arguments, {});
  return evaluator.heap().list(self.items());
}

// Jinja's sandbox hides what changes a list, but for these two.
Value list_pop(Evaluator& /*evaluator*/, const Value& self, const Arguments& arguments) {
  const Parameters parameters("pop", arguments, {"index"});
  List& list = *self.as<List>();
  const auto size = static_cast<std::int64_t>(list.size);
  std::int64_t at = parameters.integer(0, -1);
  if (at < 0) at += size;
  if (at < 0 || at >= size) fail("pop: the list has no such item");
  const Value popped = list.items[at];
  std::copy(list.items + at + 1, list.items + size, list.items + at);
  --list.size;
  return popped;
}

Value list_clear(Evaluator& /*evaluator*/, const Value& self, const Arguments& arguments) {
  const Parameters none("clear", arguments, {});
  self.as<List>()->size = 0;
  return {};
}

constexpr std::array<Named<Filter>, 5> kListMethods = {{
    {"index", sequence_index},
    {"count", sequence_count},
    {"copy", list_copy},
    {"pop", list_pop},
    {"clear", list_clear},
}};

Value loop_cycle(Evaluator& /*evaluator*/, const Value& self, const Arguments& arguments) {
  if (arguments.positional.empty()) fail("loop.cycle needs at least one item");
  const auto index = static_cast<std::size_t>(self.as<Loop>()->index0);
  return arguments.positional[index % arguments.positional.size()];
}

Value loop_changed(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  Loop& loop = *self.as<Loop>();
  const Value now = evaluator.heap().tuple(arguments.positional);
  if (loop.has_changed && equal(evaluator.budget(), loop.changed, now)) return false;
  loop.has_changed = true;
  loop.changed = now;
  return true;
}

constexpr std::array<Named<Filter>, 2> kLoopMethods = {{
    {"cycle", loop_cycle},
    {"changed", loop_changed},
}};

Value cycler_next(Evaluator& /*evaluator*/, const Value& self, const Arguments& arguments) {
  const Parameters none("next", arguments, {});
  Cycler& cycler = *self.as<Cycler>();
  const Value current = cycler.list.items[cycler.next];
  cycler.next = (cycler.next + 1) % cycler.list.size;
  return current;
}

Value cycler_reset(Evaluator& /*evaluator*/, const Value& self, const Arguments& arguments) {
  const Parameters none("reset", arguments, {});
  self.as<Cycler>()->next = 0;
  return {};
}

constexpr std::array<Named<Filter>, 2> kCyclerMethods = {{
    {"next", cycler_next},
    {"reset", cycler_reset},
}};

Value bit_length(Evaluator& /*evaluator*/, const Value& self, const Arguments& arguments) {
  const Parameters none("bit_length", arguments, {});
  const auto value = static_cast<std::uint64_t>(self.as_integer());
  return Value::integer(std::bit_width(self.as_integer() < 0 ? -value : value));
}

constexpr std::array<Named<Filter>, 1> kIntegerMethods = {{{"bit_length", bit_length}}};

Value is_integer(Evaluator& /*evaluator*/, const Value& self, const Arguments& arguments) {
  const Parameters none("is_integer", arguments, {});
  return std::isfinite(self.as_double()) && std::floor(self.as_double()) == self.as_double();
}

constexpr std::array<Named<Filter>, 1> kFloatMethods = {{{"is_integer", is_integer}}};

template <std::size_t n>
bool is_one_of(const std::array<std::string_view, n>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::span<const Named<Filter>> string_class_methods() { return kClassMethods; }

std::span<const Named<Filter>> methods_of(Kind kind) {
  switch (kind) {
    case Kind::string:
      return string_methods();
    case Kind::dict:
      return kDictMethods;
    case Kind::list:
      return kListMethods;
    case Kind::tuple:
    case Kind::range:
      return std::span(kListMethods).first(2);
    case Kind::loop:
      return kLoopMethods;
    case Kind::cycler:
      return kCyclerMethods;
    case Kind::boolean:
    case Kind::integer:
      return kIntegerMethods;
    case Kind::floating:
      return kFloatMethods;
    default:
      return {};
  }
}

bool is_missing_attribute(Kind kind, std::string_view name) {
  constexpr std::array<std::string_view, 3> kString = {"encode", "translate", "maketrans"};
  constexpr std::array<std::string_view, 8> kInteger = {
      "real",      "imag",     "numerator",  "denominator",
      "conjugate", "to_bytes", "from_bytes", "as_integer_ratio"};
  constexpr std::array<std::string_view, 6> kFloat = {"real", "imag",    "conjugate",
                                                      "hex",  "fromhex", "as_integer_ratio"};
  switch (kind) {
    case Kind::string:
      return is_one_of(kString, name);
    case Kind::boolean:
    case Kind::integer:
      return is_one_of(kInteger, name);
    case Kind::floating:
      return is_one_of(kFloat, name);
    case Kind::dict:
      return name == "fromkeys";
    default:
      return false;
  }
}

bool is_mutator(Kind kind, std::string_view name) {
  constexpr std::array<std::string_view, 6> kList = {"append", "reverse", "insert",
                                                     "sort",   "extend",  "remove"};
  constexpr std::array<std::string_view, 5> kDict = {"clear", "pop", "popitem", "setdefault",
                                                     "update"};
  if (kind == Kind::list) return is_one_of(kList, name);
  return kind == Kind::dict && is_one_of(kDict, name);
}

}  // namespace edgerunner::jinja
