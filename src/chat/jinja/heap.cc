#include "chat/jinja/heap.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "chat/jinja/compare.h"

namespace edgerunner::jinja {

void fail(std::string what) { throw Failure{.what = std::move(what)}; }

void fail_unsupported(std::string what) {
  throw Failure{.what = std::move(what), .unsupported = true};
}

Value Heap::join(std::string_view a, std::string_view b, bool markup) {
  char* const bytes = budget_.array<char>(a.size() + b.size());
  std::copy(b.begin(), b.end(), std::copy(a.begin(), a.end(), bytes));
  return Value::string({bytes, a.size() + b.size()}, markup);
}

Value Heap::undefined(std::string_view message) {
  return Value::undefined(make(Undefined{.message = budget_.copy(message)}));
}

List Heap::copy(std::span<const Value> items) {
  List made{.items = budget_.array<Value>(items.size()), .size = items.size()};
  std::uninitialized_copy(items.begin(), items.end(), made.items);
  return made;
}

Value Heap::sequence(Kind kind, std::span<const Value> items) {
  return Value::object(kind, make(copy(items)));
}

Value Heap::pair(const Value& a, const Value& b) {
  const Value both[] = {a, b};
  return tuple(both);
}

Value Heap::iterator(std::span<const Value> items, std::string_view type) {
  return Value::object(Kind::iterator, make(Iterator{.list = copy(items), .type = type}));
}

Dict* Heap::dict(std::size_t capacity) {
  Dict* const made = make(Dict{});
  if (capacity > 0) {
    made->entries = budget_.array<Dict::Entry>(capacity);
    made->capacity = capacity;
  }
  return made;
}

void Heap::append(Dict& dict, const Value& key, const Value& value) {
  if (dict.size == dict.capacity) {
    const std::size_t capacity = std::max<std::size_t>(4, dict.capacity * 2);
    auto* const entries = budget_.array<Dict::Entry>(capacity);
    std::uninitialized_copy(dict.entries, dict.entries + dict.size, entries);
    dict.entries = entries;
    dict.capacity = capacity;
  }
  new (dict.entries + dict.size) Dict::Entry{key, value};
  ++dict.size;
}

void Heap::set(Dict& dict, const Value& key, const Value& value) {
  if (Dict::Entry* const entry = find_entry(budget_, dict, key)) {
    entry->value = value;
  } else {
    append(dict, key, value);
  }
}

}  // namespace edgerunner::jinja
