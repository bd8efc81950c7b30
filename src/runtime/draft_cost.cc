#include "runtime/draft_cost.h"

#include <algorithm>

namespace edgerunner {
namespace {

// Of what was observed before, with each observation: they are a few dozen passes old at most.
constexpr double kFading = 0.95;
// Of what is assumed, beside a pass that was just timed.
constexpr double kPriorWeight = 0.3;
// The weight of a new time of passes without guesses.
constexpr double kNew = 0.25;

}  // namespace

void DraftCost::Sums::fade(double factor) {
  for (double* sum : {&weight, &x, &y, &xx, &xy}) *sum *= factor;
}

void DraftCost::Sums::add(double guesses, double multiple) {
  weight += 1;
  x += guesses;
  y += multiple;
  xx += guesses * guesses;
  xy += guesses * multiple;
}

// What is assumed until passes have been timed, and keeps the line defined where all of them had
// the same number of guesses: no less than SmolLM2 in Q8_0 took on two cores, 1.01 and 3.62
// (docs/speculation.md).
DraftCost::Sums DraftCost::prior() {
  Sums sums;
  sums.add(1, 1.4);
  sums.add(15, 3.7);
  sums.fade(kPriorWeight);
  return sums;
}

double DraftCost::of(std::uint32_t guesses) const {
  if (guesses == 0) return 1;
  Sums all = prior();
  all.weight += observed_.weight;
  all.x += observed_.x;
  all.y += observed_.y;
  all.xx += observed_.xx;
  all.xy += observed_.xy;
  const double slope =
      (all.weight * all.xy - all.x * all.y) / (all.weight * all.xx - all.x * all.x);
  const double start = (all.y - slope * all.x) / all.weight;
  return std::max(1.0, start + slope * guesses);
}

void DraftCost::took(std::uint32_t sequences, std::uint32_t guesses, Duration time) {
  if (sequences >= plain_.size()) plain_.resize(sequences + 1, Duration(0));
  Duration& plain = plain_[sequences];
  if (guesses == 0) {
    plain = plain > Duration(0) ? plain + kNew * (time - plain) : time;
  } else if (plain > Duration(0)) {
    // More than a pass of its own a guess can't cost: what seems to is the machine's doing.
    const double multiple = std::clamp(time / plain, 1.0, 1.0 + guesses);
    observed_.fade(kFading);
    observed_.add(guesses, multiple);
  }
}

}  // namespace edgerunner
