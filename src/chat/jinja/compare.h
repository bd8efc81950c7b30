#pragma once

#include <cstddef>

#include "chat/jinja/budget.h"
#include "chat/jinja/value.h"

namespace edgerunner::jinja {

// The deepest that values may be nested where they are compared or printed.
inline constexpr int kMostValueNesting = 500;

// Python's ==, which never fails (but for what is nested without end).
bool equal(Budget& budget, const Value& a, const Value& b, int depth = 0);

// Python's <, and so the order of sort, min and max. Throws Failure where the types have none.
bool less(Budget& budget, const Value& a, const Value& b, int depth = 0);

// Python's truth.
bool truth(const Value& value);

// Throws Failure for what Python refuses as a key.
void check_hashable(const Value& key, int depth = 0);

// The entry of a key, or null.
Dict::Entry* find_entry(Budget& budget, const Dict& dict, const Value& key);

}  // namespace edgerunner::jinja
