#pragma once

#include <string>
#include <vector>

#include "constraint/grammar.h"

namespace edgerunner {

// A string in JSON, without escapes, that is none of `names`: a key for a property that the schema
// does not name. (Escapes could spell a name in another way.)
NodeId key_other_than(GrammarBuilder& builder, const std::vector<std::string>& names, NodeId next);

}  // namespace edgerunner
