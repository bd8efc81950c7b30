#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>

#include "runtime/draft_cost.h"
#include "runtime/draft_length.h"
#include "runtime/drafter.h"
#include "runtime/lookup_drafter.h"

namespace edgerunner {

struct SpeculatorOptions {
  std::uint32_t most = 0;       // guesses for a sequence
  std::uint32_t most_rows = 0;  // guesses of one pass, of all sequences together
  bool adaptive = true;         // guesses as many as pay, else always as many as it may
  bool lookup = false;          // what guesses, where there is no drafter and nothing else is asked
};

// Decides how many tokens of which sequences are guessed, and has them guessed: by lookup where a
// sequence asks for it, else by the drafter, which may be null. For one thread.
class Speculator {
 public:
  Speculator(std::unique_ptr<Drafter> drafter, const SpeculatorOptions& options)
      : drafter_(std::move(drafter)), options_(options) {}

  // Fills the guesses of those of `decoding` sequences that could use any. `most` of each is how
  // many. Changes the order of the requests.
  void draft(std::span<DraftRequest> requests, std::uint32_t decoding);

  // A pass that decoded so many sequences and nothing else has taken so long.
  void took(std::uint32_t sequences, std::uint32_t guesses, DraftCost::Duration time) {
    cost_.took(sequences, guesses, guesses > 0 ? time + drafting_ : time);
  }

  void judged(std::uint64_t sequence, std::uint32_t guessed, std::uint32_t right) {
    lengths_[sequence].took(guessed, right);
  }

  void forget(std::uint64_t sequence) {
    lengths_.erase(sequence);
    lookup_.forget(sequence);
    if (drafter_) drafter_->forget(sequence);
  }

 private:
  bool by_lookup(const DraftRequest& request) const {
    return request.guessing == Guessing::lookup || (!drafter_ && options_.lookup);
  }

  LookupDrafter lookup_;
  std::unique_ptr<Drafter> drafter_;
  SpeculatorOptions options_;
  DraftCost cost_;
  DraftCost::Duration drafting_{0};  // of the last call of draft()
  std::unordered_map<std::uint64_t, DraftLength> lengths_;
};

}  // namespace edgerunner
