#pragma once

#include <string_view>

#include "constraint/grammar.h"

namespace edgerunner {

// A grammar in GBNF, the notation of llama.cpp: rules `name ::= ...` of literals, classes, `.`,
// groups, alternatives, * + ? {m,n} and other rules; the text is what `root` takes. Throws
// Error(invalid_argument) with the line.
Grammar parse_gbnf(std::string_view text);

}  // namespace edgerunner
