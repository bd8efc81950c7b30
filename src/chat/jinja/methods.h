#pragma once

#include <span>
#include <string_view>

#include "chat/jinja/builtins.h"
#include "chat/jinja/value.h"

namespace edgerunner::jinja {

struct Method {
  Value self;
  Filter call;  // with `self` as its first argument
  std::string_view name;
};

// The methods of Python's types that templates may call, by the kind of value.
std::span<const Named<Filter>> methods_of(Kind kind);
std::span<const Named<Filter>> string_methods();
std::span<const Named<Filter>> string_class_methods();  // is...: of all of a string's characters

// Whether Python has such an attribute and we don't: not undefined, but unsupported.
bool is_missing_attribute(Kind kind, std::string_view name);

// Whether Jinja's sandbox hides it, because it would change the value.
bool is_mutator(Kind kind, std::string_view name);

}  // namespace edgerunner::jinja
