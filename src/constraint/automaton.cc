#include "constraint/automaton.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "edgerunner/error.h"

namespace edgerunner {
namespace {

constexpr std::uint32_t kNoStack = 0;  // the text may end where it is empty

// Deeper nesting is not allowed: readers of JSON give up at some depth too.
constexpr std::uint32_t kMostDepth = 256;
// A text that could be read in more ways than this makes a grammar useless.
constexpr std::size_t kMostPlaces = 65536;

}  // namespace

Automaton::Automaton(std::shared_ptr<const Grammar> grammar) : grammar_(std::move(grammar)) {
  stacks_.push_back({.node = 0, .below = 0, .depth = 0});
  add({{grammar_->start, kNoStack}});
}

Automaton::StackId Automaton::push(StackId stack, NodeId node, bool nested) {
  const auto [entry, added] =
      stack_ids_.try_emplace({node, stack}, static_cast<StackId>(stacks_.size()));
  if (added) {
    stacks_.push_back(
        {.node = node, .below = stack, .depth = stacks_[stack].depth + (nested ? 1U : 0U)});
  }
  return entry->second;
}

// The state of all places that are reached from the given ones without taking a byte.
Automaton::StateId Automaton::add(std::vector<Place> places) {
  std::set<Place> seen(places.begin(), places.end());
  std::vector<Place> taking;
  bool accepts = false;
  const auto visit = [&](NodeId node, StackId stack) {
    if (seen.insert({node, stack}).second) places.push_back({node, stack});
  };
  while (!places.empty()) {
    if (seen.size() > kMostPlaces) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the grammar is too ambiguous: more than {} ways to read a text",
                              kMostPlaces));
    }
    const Place place = places.back();
    places.pop_back();
    const Grammar::Node& node = grammar_->nodes[place.node];
    switch (node.kind) {
      case Grammar::NodeKind::bytes:
        taking.push_back(place);
        break;
      case Grammar::NodeKind::split:
        for (std::uint32_t i = 0; i < node.second; ++i) {
          visit(grammar_->branches[node.first + i], place.stack);
        }
        break;
      case Grammar::NodeKind::call:
      case Grammar::NodeKind::nested_call:
        // A call at the end of a rule leaves nothing to come back for, so that lists by recursion
        // do not nest.
        if (grammar_->nodes[node.second].kind == Grammar::NodeKind::end) {
          visit(node.first, place.stack);
        } else if (const bool nested = node.kind == Grammar::NodeKind::nested_call;
                   !nested || stacks_[place.stack].depth < kMostDepth) {
          visit(node.first, push(place.stack, node.second, nested));
        }
        break;
      case Grammar::NodeKind::end:
        if (place.stack == kNoStack) {
          accepts = true;
        } else {
          visit(stacks_[place.stack].node, stacks_[place.stack].below);
        }
        break;
    }
  }
  if (taking.empty() && !accepts) return kDead;
  std::sort(taking.begin(), taking.end());
  const auto [entry, added] =
      state_ids_.try_emplace({taking, accepts}, static_cast<StateId>(states_.size()));
  if (added) {
    State state{.places = std::move(taking), .accepts = accepts, .next = {}};
    state.next.fill(kUnknown);
    states_.push_back(std::move(state));
  }
  return entry->second;
}

Automaton::StateId Automaton::find_step(StateId state, std::uint8_t byte) {
  std::vector<Place> reached;
  for (const Place& place : states_[static_cast<std::size_t>(state)].places) {
    const Grammar::Node& node = grammar_->nodes[place.node];
    if (grammar_->sets[node.first].test(byte)) reached.push_back({node.second, place.stack});
  }
  const StateId next = reached.empty() ? kDead : add(std::move(reached));
  states_[static_cast<std::size_t>(state)].next[byte] = next;
  return next;
}

Automaton::StateId Automaton::forget_all_but(StateId state) {
  std::vector<State> old_states = std::exchange(states_, {});
  const std::vector<Stack> old_stacks = std::exchange(stacks_, {});
  state_ids_.clear();
  stack_ids_.clear();
  stacks_.push_back({.node = 0, .below = 0, .depth = 0});
  add({{grammar_->start, kNoStack}});
  State& kept = old_states[static_cast<std::size_t>(state)];
  for (Place& place : kept.places) {
    std::vector<StackId> path;
    for (StackId at = place.stack; at != kNoStack; at = old_stacks[at].below) path.push_back(at);
    place.stack = kNoStack;
    for (auto at = path.rbegin(); at != path.rend(); ++at) {
      const Stack& old = old_stacks[*at];
      place.stack = push(place.stack, old.node, old.depth > old_stacks[old.below].depth);
    }
  }
  std::sort(kept.places.begin(), kept.places.end());
  const auto id = static_cast<StateId>(states_.size());
  const auto [entry, added] = state_ids_.try_emplace({kept.places, kept.accepts}, id);
  if (added) {
    kept.next.fill(kUnknown);
    states_.push_back(std::move(kept));
  }
  return entry->second;
}

}  // namespace edgerunner
