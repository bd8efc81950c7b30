#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace edgerunner {

// What guesses add to a forward pass of decoding, learned from the passes' times: kernels,
// instruction sets and models differ too much for a constant. The first guess costs a step (other
// kernels run for several rows than for one), each further one about the same.
class DraftCost {
 public:
  using Duration = std::chrono::duration<double>;

  // Whether a pass of so many sequences without guesses was timed; until then there is nothing to
  // compare with.
  bool knows(std::uint32_t sequences) const {
    return sequences < plain_.size() && plain_[sequences] > Duration(0);
  }

  // The time of a pass with `guesses` guessed rows, as a multiple of a pass without.
  double of(std::uint32_t guesses) const;

  // A pass of so many sequences has taken so long, guessing included.
  void took(std::uint32_t sequences, std::uint32_t guesses, Duration time);

 private:
  // Sums of a straight line through (guesses, multiple), by least squares.
  struct Sums {
    double weight = 0, x = 0, y = 0, xx = 0, xy = 0;
    void fade(double factor);
    void add(double guesses, double multiple);
  };
  static Sums prior();

  std::vector<Duration> plain_;  // by sequences
  Sums observed_;
};

}  // namespace edgerunner
