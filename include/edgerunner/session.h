#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "edgerunner/sampling.h"
#include "edgerunner/types.h"

namespace edgerunner {

// Logits for sequences of tokens. The caller always hands over the whole sequence, and the session
// works out whether to decode one token, compute a suffix, start again, or return what it has; the
// logits are the same to the bit either way. A session is for one thread. Sessions of one model
// share its KV cache, and are computed together with its generations.
class Session {
 public:
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // Logits after the last token, [vocab_size]; valid until the next call on this session. Throws
  // Error(invalid_argument) for an empty sequence or an id outside the vocabulary,
  // Error(context_full) for more tokens than the context, Error(cancelled) where the model was
  // destroyed or cancels all.
  std::span<const float> logits(std::span<const TokenId> tokens);

  struct Greedy {
    TokenId token;  // the arg-max; the lowest id where several are equal
    bool finite;    // whether all logits were finite; if not, the token means nothing
  };
  Greedy greedy_token(std::span<const TokenId> tokens);

  // Chooses as a generation would: for the same tokens, options and seed it gives the same token
  // (the number drawn depends on sampling.seed and tokens.size() alone). Throws Error(device) where
  // logits are not finite.
  TokenId next_token(std::span<const TokenId> tokens, const SamplingOptions& sampling);

  // Of the last call: tokens whose keys and values were found in the cache, and tokens computed.
  // Where the sequence is the one before, nothing is computed.
  std::uint32_t reused_tokens() const;
  std::uint32_t computed_tokens() const;

  struct State;
  explicit Session(std::unique_ptr<State> state);  // made by Model

 private:
  std::unique_ptr<State> state_;
};

}  // namespace edgerunner
