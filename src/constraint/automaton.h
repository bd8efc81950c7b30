#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "constraint/grammar.h"

namespace edgerunner {

// Runs a grammar over bytes: a pushdown automaton made deterministic as it goes. A state is the set
// of all places of the grammar that the text so far may have reached, each with the rules that it
// is in; states and the ways between them are kept, so that going where somebody has been is a
// look-up.
class Automaton {
 public:
  using StateId = std::int32_t;
  static constexpr StateId kDead = -1;  // the text is none of the grammar

  explicit Automaton(std::shared_ptr<const Grammar> grammar);

  StateId start() const { return 0; }
  StateId step(StateId state, std::uint8_t byte) {
    const StateId next = states_[static_cast<std::size_t>(state)].next[byte];
    return next != kUnknown ? next : find_step(state, byte);
  }
  bool accepts(StateId state) const { return states_[static_cast<std::size_t>(state)].accepts; }
  std::size_t size() const { return states_.size(); }

  // Forgets all states but one, whose new id is returned.
  StateId forget_all_but(StateId state);

 private:
  static constexpr StateId kUnknown = -2;
  using StackId = std::uint32_t;  // rules to go on with: a node, and the stack below it

  struct Place {
    NodeId node;  // one that takes a byte
    StackId stack;
    bool operator<(const Place& other) const {
      return node != other.node ? node < other.node : stack < other.stack;
    }
  };
  struct State {
    std::vector<Place> places;  // sorted
    bool accepts = false;
    std::array<StateId, 256> next;
  };
  struct Stack {
    NodeId node;
    StackId below;
    std::uint32_t depth;  // of calls within themselves
  };

  StateId find_step(StateId state, std::uint8_t byte);
  StateId add(std::vector<Place> places);
  StackId push(StackId stack, NodeId node, bool nested);

  std::shared_ptr<const Grammar> grammar_;
  std::vector<State> states_;
  std::vector<Stack> stacks_;
  std::map<std::pair<std::vector<Place>, bool>, StateId> state_ids_;
  std::map<std::pair<NodeId, StackId>, StackId> stack_ids_;
};

}  // namespace edgerunner
