#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace edgerunner {

// How many prompt rows a forward pass may take so that it ends within a time: running streams wait
// for it, a new prompt does, and so does the place of a client that has gone.
class ChunkLength {
 public:
  using Duration = std::chrono::duration<double>;

  explicit ChunkLength(Duration longest) : longest_(longest) {}  // 0: no bound

  // Rows of the next pass, at most `most`.
  std::uint32_t next(std::uint32_t most) const {
    if (longest_ <= Duration(0)) return most;
    if (per_row_ <= Duration(0)) return std::min(kFirst, most);
    const double fitting = std::min(longest_ / per_row_, 1e6);
    return std::min(std::max(kLeast, static_cast<std::uint32_t>(fitting)), most);
  }

  // A pass of so many rows has taken so long.
  void took(std::uint32_t rows, Duration time) {
    if (rows < kLeast) return;  // a pass of few rows reads all weights for them: it says nothing
    // At once where it got slower (deeper in a prompt, a busier machine), else by and by.
    per_row_ = std::max(time / rows, (per_row_ + time / rows) / 2);
  }

 private:
  static constexpr std::uint32_t kFirst = 64;  // until a pass has been timed
  static constexpr std::uint32_t kLeast = 16;  // fewer would read the weights too often

  Duration longest_;
  Duration per_row_{0};
};

}  // namespace edgerunner
