#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "chat/jinja/attribute_path.h"
#include "chat/jinja/builtins.h"
#include "chat/jinja/compare.h"
#include "chat/jinja/elements.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/text.h"
#include "chat/jinja/text_builder.h"
#include "chat/jinja/unicode.h"

namespace edgerunner::jinja {
namespace {

// The indices of keys in their order, equal ones as they were.
std::vector<std::size_t> sorted_order(Budget& budget, std::span<const Value> keys, bool reverse) {
  std::vector<std::size_t> order(keys.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return reverse ? less(budget, keys[b], keys[a]) : less(budget, keys[a], keys[b]);
  });
  return order;
}

Value list_in_order(Heap& heap, std::span<const Value> items, std::span<const std::size_t> order) {
  std::vector<Value> sorted;
  sorted.reserve(order.size());
  for (const std::size_t i : order) sorted.push_back(items[i]);
  return heap.list(sorted);
}

std::span<const Value> all_items(Heap& heap, const Value& value) {
  const List list = Elements(heap, value).all(heap);
  return {list.items, list.size};
}

Value first(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters none("first", arguments, {});
  Heap& heap = evaluator.heap();
  if (value.is(Kind::iterator)) {
    Iterator& iterator = *value.as<Iterator>();
    if (iterator.next < iterator.list.size) return iterator.list.items[iterator.next++];
  } else if (value.is_string() && !value.as_string().empty()) {
    return evaluator.item(value, Value::integer(0));
  } else if (const Elements elements(heap, value); elements.size() > 0) {
    return elements.at(heap, 0);
  }
  return heap.undefined("there is no first item: the sequence is empty");
}

Value last(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters none("last", arguments, {});
  Heap& heap = evaluator.heap();
  if (value.is(Kind::iterator)) fail("a generator has no last item; use |list first");
  const Elements elements(heap, value);
  if (elements.size() > 0) return elements.at(heap, elements.size() - 1);
  return heap.undefined("there is no last item: the sequence is empty");
}

Value join(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters parameters("join", arguments, {"d", "attribute"});
  Heap& heap = evaluator.heap();
  const std::string separator =
      parameters.has(0) ? to_text(evaluator.budget(), parameters[0]) : std::string();
  const AttributePath path(evaluator, parameters.has(1) ? parameters[1] : Value());
  const Elements elements(heap, value);
  TextBuilder text(heap);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (i > 0) text += separator;
    text += to_text(evaluator.budget(), path.of(evaluator, elements.at(heap, i)));
  }
  return text.value();
}

Value list(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters none("list", arguments, {});
  return evaluator.heap().list(all_items(evaluator.heap(), value));
}

Value reverse(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters none("reverse", arguments, {});
  Heap& heap = evaluator.heap();
  if (value.is_string()) {
    std::u32string points = decode(value.as_string());
    std::reverse(points.begin(), points.end());
    return heap.string(encode(points), value.flag());
  }
  const std::span<const Value> items = all_items(heap, value);
  const std::vector<Value> reversed(items.rbegin(), items.rend());
  return value.is(Kind::iterator) ? heap.list(reversed)
                                  : heap.iterator(reversed, "reversed iterator");
}

Value sort(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters parameters("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  Heap& heap = evaluator.heap();
  std::vector<AttributePath> paths;
  if (parameters.has(2) && parameters[2].is_string()) {
    std::string_view rest = parameters[2].as_string();
    for (std::size_t comma = 0; comma != std::string_view::npos;) {
      comma = rest.find(',');
      paths.emplace_back(evaluator, heap.string(rest.substr(0, comma)));
      if (comma != std::string_view::npos) rest.remove_prefix(comma + 1);
    }
  } else {
    paths.emplace_back(evaluator, parameters.has(2) ? parameters[2] : Value());
  }
  const std::span<const Value> items = all_items(heap, value);
  std::vector<Value> keys;
  for (const Value& item : items) {
    std::vector<Value> parts;
    for (const AttributePath& path : paths) {
      const Value part = path.of(evaluator, item);
      parts.push_back(parameters.truth(1) ? part : without_case(evaluator, part));
    }
    keys.push_back(heap.list(parts));
  }
  return list_in_order(heap, items, sorted_order(evaluator.budget(), keys, parameters.truth(0)));
}

Value dictsort(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters parameters("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  Heap& heap = evaluator.heap();
  const std::string_view by = parameters.text(1, "key");
  if (by != "key" && by != "value") fail("dictsort sorts by 'key' or 'value'");
  if (!value.is(Kind::dict)) {
    if (value.is_undefined()) fail(std::string(value.as<Undefined>()->message));
    fail(fmt::format("dictsort needs a dict, not '{}'", type_name(value)));
  }
  std::vector<Value> items;
  std::vector<Value> keys;
  for (const auto& [key, item] : value.as<Dict>()->all()) {
    items.push_back(heap.pair(key, item));
    const Value& sorted_by = by == "key" ? key : item;
    keys.push_back(parameters.truth(0) ? sorted_by : without_case(evaluator, sorted_by));
  }
  return list_in_order(heap, items, sorted_order(evaluator.budget(), keys, parameters.truth(2)));
}

Value unique(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters parameters("unique", arguments, {"case_sensitive", "attribute"});
  Heap& heap = evaluator.heap();
  const AttributePath path(evaluator, parameters.has(1) ? parameters[1] : Value());
  std::vector<Value> found;
  Dict seen;
  for (const Value& item : all_items(heap, value)) {
    Value key = path.of(evaluator, item);
    if (!parameters.truth(0)) key = without_case(evaluator, key);
    check_hashable(key);
    if (find_entry(evaluator.budget(), seen, key) != nullptr) continue;
    heap.append(seen, key, Value());
    found.push_back(item);
  }
  return heap.iterator(found);
}

template <bool largest>
Value extreme(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters parameters(largest ? "max" : "min", arguments, {"case_sensitive", "attribute"});
  Heap& heap = evaluator.heap();
  const AttributePath path(evaluator, parameters.has(1) ? parameters[1] : Value());
  const std::span<const Value> items = all_items(heap, value);
  if (items.empty()) return heap.undefined("there is no item to take: the sequence is empty");
  const auto key_of = [&](const Value& item) {
    const Value key = path.of(evaluator, item);
    return parameters.truth(0) ? key : without_case(evaluator, key);
  };
  const Value* best = &items.front();
  Value best_key = key_of(*best);
  for (const Value& item : items.subspan(1)) {
    const Value key = key_of(item);
    const bool better =
        largest ? less(evaluator.budget(), best_key, key) : less(evaluator.budget(), key, best_key);
    if (!better) continue;
    best = &item;
    best_key = key;
  }
  return *best;
}

Value sum(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters parameters("sum", arguments, {"attribute", "start"});
  Heap& heap = evaluator.heap();
  const AttributePath path(evaluator, parameters.has(0) ? parameters[0] : Value());
  Value total = parameters.has(1) ? parameters[1] : Value::integer(0);
  if (total.is_string()) fail("sum adds no strings; use |join");
  for (const Value& item : all_items(heap, value)) {
    total = binary(heap, Operator::add, total, path.of(evaluator, item));
  }
  return total;
}

Value batch(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters parameters("batch", arguments, {"linecount", "fill_with"}, 1);
  Heap& heap = evaluator.heap();
  const std::int64_t wanted = parameters.integer(0);
  std::vector<Value> rows;
  std::vector<Value> row;
  for (const Value& item : all_items(heap, value)) {
    if (static_cast<std::int64_t>(row.size()) == wanted) {
      rows.push_back(heap.list(row));
      row.clear();
    }
    row.push_back(item);
  }
  if (!row.empty()) {
    while (!parameters.is_none(1) && static_cast<std::int64_t>(row.size()) < wanted) {
      evaluator.budget().take(sizeof(Value));
      row.push_back(parameters[1]);
    }
    rows.push_back(heap.list(row));
  }
  return heap.iterator(rows);
}

Value slice_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters parameters("slice", arguments, {"slices", "fill_with"}, 1);
  Heap& heap = evaluator.heap();
  const std::span<const Value> items = all_items(heap, value);
  const std::int64_t given = parameters.integer(0);
  if (given == 0) fail("slice needs at least one slice");
  const std::size_t slices = given > 0 ? static_cast<std::size_t>(given) : 0;
  std::vector<Value> rows;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < slices; ++i) {
    evaluator.budget().take(sizeof(Value));
    const bool longer = i < items.size() % slices;
    const std::size_t count = items.size() / slices + (longer ? 1 : 0);
    std::vector<Value> row(items.begin() + static_cast<std::ptrdiff_t>(begin),
                           items.begin() + static_cast<std::ptrdiff_t>(begin + count));
    if (!parameters.is_none(1) && !longer) row.push_back(parameters[1]);
    rows.push_back(heap.list(row));
    begin += count;
  }
  return heap.iterator(rows);
}

Value groupby(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Parameters parameters("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  Heap& heap = evaluator.heap();
  const AttributePath path(evaluator, parameters[0]);
  const Value fallback = parameters.has(1) ? parameters[1] : Value();
  const std::span<const Value> items = all_items(heap, value);
  std::vector<Value> names;
  std::vector<Value> keys;
  for (const Value& item : items) {
    names.push_back(path.of(evaluator, item, fallback));
    keys.push_back(parameters.truth(2) ? names.back() : without_case(evaluator, names.back()));
  }
  const std::vector<std::size_t> order = sorted_order(evaluator.budget(), keys, false);
  std::vector<Value> groups;
  for (std::size_t begin = 0; begin < order.size();) {
    std::vector<Value> members;
    std::size_t end = begin;
    for (; end < order.size() && equal(evaluator.budget(), keys[order[begin]], keys[order[end]]);
         ++end) {
      members.push_back(items[order[end]]);
    }
    if (end == begin) members.push_back(items[order[end++]]);  // equal to nothing: not a number
    const Value parts[] = {names[order[begin]], heap.list(members)};
    groups.push_back(Value::object(Kind::tuple, heap.make(heap.copy(parts)), true));
    begin = end;
  }
  return heap.list(groups);
}

constexpr std::array<Named<Filter>, 14> kFilters = {{
    {"first", first},
    {"last", last},
    {"join", join},
    {"list", list},
    {"reverse", reverse},
    {"sort", sort},
    {"dictsort", dictsort},
    {"unique", unique},
    {"min", extreme<false>},
    {"max", extreme<true>},
    {"sum", sum},
    {"batch", batch},
    {"slice", slice_filter},
    {"groupby", groupby},
}};

}  // namespace

std::span<const Named<Filter>> sequence_filters() { return kFilters; }

}  // namespace edgerunner::jinja
