#pragma once

#include "chat/jinja/heap.h"
#include "chat/jinja/syntax_tree.h"
#include "chat/jinja/value.h"

namespace edgerunner::jinja {

// Python's operators. Throw Failure where Python raises, and for integers beyond 64 bits.
Value binary(Heap& heap, Operator op, const Value& left, const Value& right);
Value with_sign(const Value& value, bool negative);
bool compare(Heap& heap, Operator op, const Value& left, const Value& right);
bool contains(Heap& heap, const Value& container, const Value& item);

// object[begin:end:step], none where a bound is left out.
Value slice(Heap& heap, const Value& object, const Value& begin, const Value& end,
            const Value& step);

Value add(Heap& heap, const Value& left, const Value& right);
[[noreturn]] void fail_integer_range();

}  // namespace edgerunner::jinja
