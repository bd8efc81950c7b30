#include "constraint/constraint.h"

#include <algorithm>
#include <utility>

#include "edgerunner/error.h"

namespace edgerunner {
namespace {

// A mask of 128,000 tokens takes 16 KB, a state 1 KB: some 16 MB of each at most.
constexpr std::size_t kMostMasks = 1024;
constexpr std::size_t kMostStates = 16384;

}  // namespace

Constraint::Constraint(std::shared_ptr<const Grammar> grammar,
                       std::shared_ptr<const TokenTrie> trie)
    : trie_(std::move(trie)),
      automaton_(std::move(grammar)),
      state_(automaton_.start()),
      path_(trie_->deepest() + 1) {}

std::span<const std::uint64_t> Constraint::mask() {
  if (const auto known = masks_.find(state_); known != masks_.end()) return known->second;
  if (masks_.size() >= kMostMasks || automaton_.size() >= kMostStates) {
    masks_.clear();
    if (automaton_.size() >= kMostStates) state_ = automaton_.forget_all_but(state_);
  }
  return masks_[state_] = compute_mask();
}

// Walks the vocabulary's tree and the automaton together: what a byte makes impossible is
// impossible for all tokens that go on from there.
Constraint::Mask Constraint::compute_mask() {
  Mask mask((trie_->vocab_size() + 63) / 64, 0);
  bool any = false;
  const auto allow = [&](std::span<const TokenId> tokens) {
    for (const TokenId token : tokens) {
      const auto id = static_cast<std::uint32_t>(token);
      mask[id / 64] |= std::uint64_t{1} << (id % 64);
      any = true;
    }
  };
  path_[0] = state_;
  for (std::size_t i = 0; i < trie_->size();) {
    const TokenTrie::Node& node = trie_->node(i);
    const Automaton::StateId next = automaton_.step(path_[node.depth - 1U], node.byte);
    if (next == Automaton::kDead) {
      i = node.skip;
      continue;
    }
    path_[node.depth] = next;
    allow(trie_->tokens_at(i));
    ++i;
  }
  if (automaton_.accepts(state_)) allow(trie_->ends());
  if (!any) {
    throw Error(ErrorCode::unsupported,
                "the model's vocabulary has no token that goes on with the text as the grammar or "
                "schema wants it");
  }
  return mask;
}

void Constraint::accept(TokenId token) {
  const std::span<const TokenId> ends = trie_->ends();
  if (std::find(ends.begin(), ends.end(), token) != ends.end()) return;
  for (const char c : trie_->bytes_of(token)) {
    const Automaton::StateId next = automaton_.step(state_, static_cast<std::uint8_t>(c));
    if (next == Automaton::kDead) {
      throw Error(ErrorCode::invalid_argument, "a token came that the grammar does not allow");
    }
    state_ = next;
  }
}

bool Constraint::finished() {
  if (!automaton_.accepts(state_)) return false;
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (automaton_.step(state_, static_cast<std::uint8_t>(byte)) != Automaton::kDead) return false;
  }
  return true;
}

}  // namespace edgerunner
