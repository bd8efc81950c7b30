#include "runtime/draft_length.h"

#include <algorithm>

namespace edgerunner {
namespace {

constexpr double kFading = 0.8;  // of counts with each draft: about the last five count

}  // namespace

std::uint32_t DraftLength::next(const DraftCost& cost, std::uint32_t sequences,
                                std::uint32_t most) {
  if (waiting_ > 0) {
    --waiting_;
    return 0;
  }
  std::uint32_t best = 0;
  double best_rate = 1;  // tokens in the time of a pass without guesses
  double expected = 1;   // tokens of a pass
  double all_right = 1;
  const double chance = right_ / tried_;  // that a guess is right after right ones
  for (std::uint32_t count = 1; count <= most; ++count) {
    all_right *= chance;
    expected += all_right;
    const double rate = expected / cost.of(count * sequences);
    if (rate > best_rate) {
      best = count;
      best_rate = rate;
    }
  }
  trial_ = best == 0;
  return trial_ ? std::min(kTrial, most) : best;
}

void DraftLength::took(std::uint32_t guessed, std::uint32_t right) {
  right_ = kFading * right_ + right;
  tried_ = kFading * tried_ + right + (right < guessed ? 1 : 0);
  if (!trial_ || right == guessed) {
    pause_ = kFirstPause;
    return;
  }
  waiting_ = pause_;
  pause_ = std::min(2 * pause_, kLongestPause);
}

}  // namespace edgerunner
