#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "constraint/automaton.h"

namespace edgerunner::test {

// Whether a text is one of the grammar.
inline bool accepts(const std::shared_ptr<const Grammar>& grammar, std::string_view text) {
  Automaton automaton(grammar);
  Automaton::StateId state = automaton.start();
  for (const char c : text) {
    state = automaton.step(state, static_cast<std::uint8_t>(c));
    if (state == Automaton::kDead) return false;
  }
  return automaton.accepts(state);
}

}  // namespace edgerunner::test
