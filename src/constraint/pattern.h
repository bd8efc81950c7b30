#pragma once

#include <string_view>

#include "constraint/grammar.h"
#include "constraint/json_grammar.h"

namespace edgerunner {

// The inside of a JSON string that a regular expression of JSON Schema (ECMA 262) finds something
// in: literals, classes, groups, alternatives, quantifiers, ^ at the front and $ at the end. What
// languages read differently (\d and its like beyond ASCII, "." and line ends) is taken as narrowly
// as any of them does. Throws Error(invalid_argument) for what can't be enforced.
NodeId string_matching(GrammarBuilder& builder, JsonGrammar& json, std::string_view pattern,
                       NodeId next);

}  // namespace edgerunner
