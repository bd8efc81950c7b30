#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>

#include "runtime/draft_cost.h"
#include "runtime/draft_length.h"
#include "runtime/drafter.h"

namespace edgerunner {

struct SpeculatorOptions {
  std::uint32_t most = 0;       // guesses for a sequence
  std::uint32_t most_rows = 0;  // guesses of one pass, of all sequences together
  bool adaptive = true;         // guesses as many as pay, else always as many as it may
};

// Decides how many tokens of which sequences are guessed, and has them guessed. For one thread.
class Speculator {
 public:
  Speculator(std::unique_ptr<Drafter> drafter, const SpeculatorOptions& options)
      : drafter_(std::move(drafter)), options_(options) {}

  // Fills the guesses of all sequences that are decoding. `most` of each is what it could use.
  void draft(std::span<DraftRequest> requests);

  // A pass that decoded so many sequences and nothing else has taken so long.
  void took(std::uint32_t sequences, std::uint32_t guesses, DraftCost::Duration time) {
    cost_.took(sequences, guesses, guesses > 0 ? time + drafting_ : time);
  }

  void judged(std::uint64_t sequence, std::uint32_t guessed, std::uint32_t right) {
    lengths_[sequence].took(guessed, right);
  }

  void forget(std::uint64_t sequence) {
    lengths_.erase(sequence);
    drafter_->forget(sequence);
  }

 private:
  std::unique_ptr<Drafter> drafter_;
  SpeculatorOptions options_;
  DraftCost cost_;
  DraftCost::Duration drafting_{0};  // of the last call of draft()
  std::unordered_map<std::uint64_t, DraftLength> lengths_;
};

}  // namespace edgerunner
