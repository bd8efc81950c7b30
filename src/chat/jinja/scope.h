#pragma once

#include "chat/jinja/value.h"

namespace edgerunner::jinja {

// The variables of a template, a loop's body, a macro, ...: those set there, then those around.
struct Scope {
  Dict variables;  // by name, a string
  Scope* parent = nullptr;
  bool captured = false;  // a macro refers to it: it may not be used again
};

}  // namespace edgerunner::jinja
