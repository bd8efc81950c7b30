#pragma once

#include <string_view>

#include "constraint/grammar.h"

namespace edgerunner {

// Text in which `mark` doesn't stand, up to and with the mark, where it goes on at `next`. The text
// may also end before the mark comes, where it goes on at `without` (GrammarBuilder::kNothing: it
// may not).
NodeId text_up_to(GrammarBuilder& builder, std::string_view mark, NodeId next, NodeId without);

// Any text at all, of any length.
NodeId any_text(GrammarBuilder& builder, NodeId next);

}  // namespace edgerunner
