#include <fmt/format.h>

#include <array>
#include <optional>

#include "chat/jinja/attribute_path.h"
#include "chat/jinja/builtins.h"
#include "chat/jinja/compare.h"
#include "chat/jinja/elements.h"
#include "chat/jinja/text.h"

namespace edgerunner::jinja {
namespace {

Value map(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  Heap& heap = evaluator.heap();
  if (!truth(value)) return heap.iterator({});
  std::vector<Value> results;
  const Elements elements(heap, value);
  if (arguments.positional.empty() && arguments.find("attribute") != nullptr) {
    const Parameters parameters("map", arguments, {"attribute", "default"});
    const AttributePath path(evaluator, parameters[0]);
    const Value fallback = parameters.has(1) ? parameters[1] : Value();
    for (std::size_t i = 0; i < elements.size(); ++i) {
      results.push_back(path.of(evaluator, elements.at(heap, i), fallback));
    }
    return heap.iterator(results);
  }
  if (arguments.positional.empty()) fail("map needs the name of a filter, or an attribute");
  const std::string name = to_text(evaluator.budget(), arguments.positional.front());
  const Arguments rest{.positional = {arguments.positional.begin() + 1, arguments.positional.end()},
                       .named = arguments.named};
  for (std::size_t i = 0; i < elements.size(); ++i) {
    results.push_back(evaluator.apply_filter(name, elements.at(heap, i), rest));
  }
  return heap.iterator(results);
}

// The items for which a test holds, or does not; of an attribute of theirs where `by_attribute`.
template <bool wanted, bool by_attribute>
Value select(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  Heap& heap = evaluator.heap();
  if (!truth(value)) return heap.iterator({});
  const std::vector<Value>& given = arguments.positional;
  std::size_t used = 0;
  Value attribute;
  if (by_attribute) {
    if (given.empty()) fail("the name of an attribute is missing");
    attribute = given[used++];
  }
  std::optional<std::string> test;
  if (used < given.size()) test = to_text(evaluator.budget(), given[used++]);
  const Arguments rest{
      .positional = {given.begin() + static_cast<std::ptrdiff_t>(used), given.end()},
      .named = arguments.named};
  const AttributePath path(evaluator, attribute);

  std::vector<Value> selected;
  const Elements elements(heap, value);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const Value item = elements.at(heap, i);
    const Value judged = path.of(evaluator, item);
    const bool holds = test ? evaluator.apply_test(*test, judged, rest) : truth(judged);
    if (holds == wanted) selected.push_back(item);
  }
  return heap.iterator(selected);
}

constexpr std::array<Named<Filter>, 5> kFilters = {{
    {"map", map},
    {"select", select<true, false>},
    {"reject", select<false, false>},
    {"selectattr", select<true, true>},
    {"rejectattr", select<false, true>},
}};

}  // namespace

std::span<const Named<Filter>> selecting_filters() { return kFilters; }

}  // namespace edgerunner::jinja
