#pragma once

#include "chat/jinja/source.h"
#include "chat/jinja/syntax_tree.h"

namespace edgerunner::jinja {

// The deepest that expressions and tags may nest; Jinja itself gives up at fewer brackets.
inline constexpr std::uint32_t kMostNesting = 200;

// Parses a template as Jinja2 3.1 does, with the tags `break`, `continue` and `generation`. Throws
// Error(invalid_file) for what Jinja refuses too, Error(unsupported) for what only we do, with line
// and column.
Block parse(const Source& source);

}  // namespace edgerunner::jinja
