#pragma once

#include <cstdint>

#include "runtime/draft_cost.h"

namespace edgerunner {

// How many tokens of a sequence are worth guessing, by how often its guesses were right. Where none
// is, a short guess is tried from time to time, ever more rarely, so that a text that begins to
// repeat is noticed and one that never does costs little.
class DraftLength {
 public:
  // Guesses for the next pass, at most `most`, where `sequences` guess alike. 0: none.
  std::uint32_t next(const DraftCost& cost, std::uint32_t sequences, std::uint32_t most);

  // Of the guesses made, so many were right before the first wrong one.
  void took(std::uint32_t guessed, std::uint32_t right);

 private:
  static constexpr std::uint32_t kTrial = 2;  // guesses
  static constexpr std::uint32_t kFirstPause = 4;
  static constexpr std::uint32_t kLongestPause = 64;  // passes

  // Fading counts. They begin as if guesses had been made, so that the first are not few.
  double right_ = 2.4;
  double tried_ = 3;
  bool trial_ = false;  // the last guesses were not expected to pay
  std::uint32_t pause_ = kFirstPause;
  std::uint32_t waiting_ = 0;  // passes without guesses to come
};

}  // namespace edgerunner
