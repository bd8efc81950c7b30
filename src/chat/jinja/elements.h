#pragma once

#include <cstddef>

#include "chat/jinja/heap.h"
#include "chat/jinja/value.h"

namespace edgerunner::jinja {

// What going through a value gives: a list's items, a string's characters, a dict's keys, ... An
// iterator is used up by it.
class Elements {
 public:
  Elements() = default;
  // Throws Failure for what is not iterable.
  Elements(Heap& heap, const Value& value);

  std::size_t size() const { return size_; }
  Value at(Heap& heap, std::size_t i) const;

  // All of them, in memory of the rendering.
  List all(Heap& heap) const;

  static bool is_iterable(const Value& value);

 private:
  Value source_;  // a list, tuple, view or range
  std::size_t size_ = 0;
};

// Python's len(). Throws Failure where there is none.
std::size_t length(const Value& value);
bool has_length(const Value& value);

}  // namespace edgerunner::jinja
