#pragma once

#include <cstdint>

#include "chat/jinja/elements.h"
#include "chat/jinja/value.h"

namespace edgerunner::jinja {

// What the variable `loop` knows of a for loop. Items come one by one, so that a condition of the
// loop sees what its body changed, as in Jinja; `last` and `nextitem` look one ahead, `length` to
// the end.
struct Loop {
  Elements elements;
  std::size_t taken = 0;     // of the elements
  std::int64_t index0 = -1;  // of the items that the body has seen
  std::int64_t depth0 = 0;   // of a recursive loop
  const Statement* statement = nullptr;
  Scope* scope = nullptr;  // around the loop
  Value previous;
  Value current;
  bool has_next = false;  // whether `next` was taken ahead
  Value next;
  bool has_changed = false;  // whether loop.changed() was called
  Value changed;             // with what, a tuple
  List rest;                 // items found to the end, where `counted`
  std::size_t rest_next = 0;
  bool counted = false;
};

}  // namespace edgerunner::jinja
