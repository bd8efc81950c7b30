#pragma once

#include <cstdint>
#include <span>

#include "backend/executor.h"
#include "edgerunner/sampling.h"
#include "edgerunner/types.h"

namespace edgerunner {

// How the token after a row of a batch is to be chosen.
struct TokenChoice {
  const SamplingOptions* sampling = nullptr;  // checked
  std::span<const TokenId> history;           // the sequence's tokens, the row's own the last
  std::uint64_t index = 0;                    // of the token in its sequence: what is drawn by
};

// The part of an executor that chooses tokens where the logits are, so that these need not travel.
// It follows the steps of edgerunner/sampling.h, with the draws of base/random.h: what it chooses
// is what the runtime's Sampler would have chosen, unless two sums lie within a rounding of each
// other.
class TokenChooser {
 public:
  virtual ~TokenChooser() = default;

  // Whether rows with these options may be given to choose().
  virtual bool can_choose(const SamplingOptions& options) const = 0;

  // Most tokens of a row that one call of choose() makes.
  virtual std::uint32_t most_steps() const = 0;

  // Computes a batch as Executor::forward() does, and puts the token after each of its logit rows
  // into `tokens`, [steps, logit rows]. Where `steps` is more than 1, every row of the batch is a
  // sequence of its own and wants logits, and its page table has room for steps - 1 positions more:
  // each token chosen is the sequence's next row, and `choices` are for the first of them.
  //
  // kNoToken stands for a choice that is left to the caller, by forward() and a Sampler: logits
  // that are not finite, or more likely tokens than are kept track of. What follows it in the same
  // row means nothing.
  virtual void choose(const Batch& batch, std::span<const TokenChoice> choices, std::uint32_t steps,
                      std::span<TokenId> tokens) = 0;
};

}  // namespace edgerunner
