#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <span>

#include "arch/adapter_set.h"
#include "edgerunner/generation.h"
#include "edgerunner/sampling.h"
#include "edgerunner/types.h"

namespace edgerunner {

// A sequence that a scheduler brings forward: it computes the tokens, hands over the logits after
// the last, and goes on as the task decides. Everything is called on the scheduler's thread, except
// that `fail` is called by Scheduler::submit where the scheduler has stopped. One of advance,
// take or take_hidden (with Step::done), cancel and fail is the last call.
class Task {
 public:
  enum class Step {
    append,   // tokens() has grown; what was computed still holds
    restart,  // tokens() has changed otherwise
    done,
  };

  virtual ~Task() = default;

  virtual std::span<const TokenId> tokens() const = 0;  // never empty
  // What applies to its sequence, all the time; null: the model as it is.
  virtual const AdapterSet* adapters() const { return nullptr; }
  virtual bool cancelled() const = 0;  // asked before each forward pass

  // Computing begins; the first `reused` tokens were found in the cache. Called once.
  virtual void start(std::uint32_t reused) = 0;

  // How the tokens after the last are to be chosen.
  struct Wish {
    const SamplingOptions* sampling;
    std::uint64_t index;  // of the token in its sequence
    std::uint32_t most;  // tokens that the task may take from here on, and its context has room for
    Guessing guessing = Guessing::as_loaded;
    std::uint32_t most_guesses = 0;  // at once; 0: no bound of the task's own
  };
  // Told so that a backend may do it where the logits are. Nullopt: the task wants the logits.
  virtual std::optional<Wish> wish() const { return std::nullopt; }
  // Told so that the tokens may be guessed ahead; the task gets their logits all the same. Nullopt:
  // there is nothing to guess.
  virtual std::optional<Wish> outlook() const { return std::nullopt; }
  // Guesses of the coming tokens that are computed along: as long as the task goes on with them,
  // one by one, it gets the logits after each at once. The tokens last until the task asks for
  // another.
  virtual void guessed(std::span<const TokenId> /*tokens*/) {}

  // The token after the last, chosen as wished.
  virtual Step take(TokenId /*token*/) { return Step::done; }

  // Logits after the last token, [vocab_size], to be used as scratch. What it throws ends this task
  // alone.
  virtual Step advance(std::span<float> logits) = 0;

  // Whether the task wants the hidden states of all its tokens instead of logits after the last.
  // Nothing of its sequence is reused then.
  virtual bool wants_hidden() const { return false; }

  // Hidden states of tokens first to first + rows - 1 after the final norm, [rows, dim], in order;
  // from 0 again where the sequence had to be computed again. Step::append: goes on.
  virtual Step take_hidden(std::uint32_t /*first*/, std::uint32_t /*rows*/,
                           std::span<const float> /*hidden*/) {
    return Step::done;
  }

  virtual void cancel() noexcept = 0;
  virtual void fail(const std::exception_ptr& error) noexcept = 0;
};

}  // namespace edgerunner
