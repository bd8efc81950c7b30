#pragma once

#include <string_view>

#include "chat/jinja/arguments.h"
#include "chat/jinja/heap.h"
#include "chat/jinja/value.h"

namespace edgerunner::jinja {

class Evaluator;

// Python's `format % value`: a tuple gives several values, a dict named ones.
Value printf_format(Heap& heap, const Value& format, const Value& value);

// Python's format.format(...), with the fields' attributes under the sandbox's rules.
Value brace_format(Evaluator& evaluator, std::string_view format, const Arguments& arguments);

}  // namespace edgerunner::jinja
