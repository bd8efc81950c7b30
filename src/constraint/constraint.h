#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "constraint/automaton.h"
#include "constraint/grammar.h"
#include "constraint/token_trie.h"
#include "edgerunner/types.h"

namespace edgerunner {

// Holds one generation to a grammar: says which tokens may come next, and is told which came. What
// ends by the model's own end of generation is a text of the grammar.
class Constraint {
 public:
  Constraint(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> trie);

  // The tokens that may come next, a bit each, lowest first: [ceil(vocab_size / 64)]. Valid until
  // the next call. Throws Error(unsupported) where the vocabulary can't spell any way on.
  std::span<const std::uint64_t> mask();

  // `token` was chosen; it must be one that the mask allows.
  void accept(TokenId token);

  // Whether the text is whole, and nothing but the end of generation may come.
  bool finished();

  static bool allows(std::span<const std::uint64_t> mask, TokenId token) {
    const auto id = static_cast<std::uint32_t>(token);
    return (mask[id / 64] >> (id % 64) & 1) != 0;
  }

 private:
  using Mask = std::vector<std::uint64_t>;

  Mask compute_mask();

  std::shared_ptr<const TokenTrie> trie_;
  Automaton automaton_;
  Automaton::StateId state_;
  std::unordered_map<Automaton::StateId, Mask> masks_;
  std::vector<Automaton::StateId> path_;  // of the walk, by depth
};

}  // namespace edgerunner
