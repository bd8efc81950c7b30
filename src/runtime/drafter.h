#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "edgerunner/generation.h"
#include "edgerunner/sampling.h"
#include "edgerunner/types.h"

namespace edgerunner {

// A sequence whose next tokens are to be guessed.
struct DraftRequest {
  std::uint64_t sequence = 0;  // names it from one call to the next
  std::span<const TokenId> tokens;
  const SamplingOptions* sampling = nullptr;  // how the next ones will be chosen
  std::uint64_t index = 0;                    // of the first of them in its sequence
  std::uint32_t most = 0;                     // guesses wanted
  Guessing guessing = Guessing::as_loaded;    // which drafter is to guess
  std::vector<TokenId>* guesses = nullptr;    // where they go; empty before
};

// Guesses how sequences go on. A guess that turns out wrong costs time and nothing else. For one
// thread.
class Drafter {
 public:
  virtual ~Drafter() = default;

  // At most `most` guesses for each, fewer or none where it has none.
  virtual void draft(std::span<const DraftRequest> requests) = 0;

  // A sequence has ended, or is no longer the one before with more tokens. It may be unknown.
  virtual void forget(std::uint64_t sequence) = 0;
};

}  // namespace edgerunner
