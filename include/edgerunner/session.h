#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "edgerunner/sampling.h"
#include "edgerunner/types.h"

namespace edgerunner {

// Full-prefix semantics: the caller always hands over the whole sequence, and the session works out
// whether to decode one token, compute a suffix, start again, or return what it has. Reuse is right
// by construction. A session is for one thread; sessions of one model share its cache.
class Session {
 public:
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // Logits after the last token, [vocab_size]; valid until the next call on this session. Throws
  // Error(context_full), Error(invalid_argument) for an empty sequence or an id out of range.
  std::span<const float> logits(std::span<const TokenId> tokens);

  struct Greedy {
    TokenId token;  // the arg-max; the lowest id where several are equal
    bool finite;    // whether all logits were finite; if not, the token means nothing
  };
  Greedy greedy_token(std::span<const TokenId> tokens);

  // Draws with a generator seeded by (sampling.seed, tokens.size()), so that the same prefix and
  // seed give the same token. Throws Error(device) where logits are not finite.
  TokenId next_token(std::span<const TokenId> tokens, const SamplingOptions& sampling);

  // Of the last call: tokens whose keys and values were found in the cache, and tokens computed.
  std::uint32_t reused_tokens() const;
  std::uint32_t computed_tokens() const;

  struct State;
  explicit Session(std::unique_ptr<State> state);  // made by Model

 private:
  std::unique_ptr<State> state_;
};

}  // namespace edgerunner
