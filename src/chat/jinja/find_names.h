#pragma once

#include <string_view>

#include "chat/jinja/syntax_tree.h"

namespace edgerunner::jinja {

// Whether a name is read anywhere in a block before it is assigned there, as Jinja decides whether
// a macro takes `caller`, `kwargs` or `varargs`. Blocks within count, macros too.
bool reads_name(const Block& block, std::string_view name);

}  // namespace edgerunner::jinja
