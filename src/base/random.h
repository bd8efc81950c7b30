#pragma once

#include <cstdint>

namespace edgerunner {

// SplitMix64's output function (Steele, Lea and Flood, "Fast splittable pseudorandom number
// generators", 2014; constants of Stafford's variant 13): a bijection of 64 bits.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

// The draw for the token at an index of a sequence: output number `index` of the SplitMix64 stream
// whose state starts at mix64(seed), as a multiple of 2^-53 in [0, 1). A function of its arguments
// alone: nothing else that the process does can change it, and a sequence that is computed again
// draws the same numbers again.
constexpr double uniform_at(std::uint64_t seed, std::uint64_t index) {
  constexpr std::uint64_t kGamma = 0x9E3779B97F4A7C15U;
  const std::uint64_t bits = mix64(mix64(seed) + (index + 1) * kGamma);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace edgerunner
