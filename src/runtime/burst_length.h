#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace edgerunner {

// How many tokens a backend should choose at once before it comes back. More of them hide what a
// turn costs the host (20 to 50 us on a GPU); fewer let it notice a cancellation, a stop string and
// a new prompt sooner.
class BurstLength {
 public:
  using Duration = std::chrono::duration<double>;

  // Half of what a reader can notice, and some hundred times what a turn costs.
  static constexpr Duration kLongest{0.02};

  explicit BurstLength(Duration longest = kLongest) : longest_(longest) {}

  // Tokens of the next burst, at most `most`; 1 until a burst has been timed.
  std::uint32_t next(std::uint32_t most) const {
    return std::clamp<std::uint32_t>(fitting_, 1, std::max(1U, most));
  }

  // A burst of `steps` has taken so long.
  void took(std::uint32_t steps, Duration time) {
    const double fitting = longest_ / std::max(time / steps, Duration(1e-6));
    fitting_ = static_cast<std::uint32_t>(std::min(fitting, 1024.0));
  }

 private:
  Duration longest_;
  std::uint32_t fitting_ = 1;
};

}  // namespace edgerunner
