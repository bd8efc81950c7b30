#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace edgerunner::test {

// SplitMix64 (Steele, Lea, Flood 2014): the same sequence on every machine.
class MutationRandom {
 public:
  explicit MutationRandom(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(next() % limit); }

 private:
  std::uint64_t state_;
};

// `bytes` with one to three changes of a kind that finds mistakes in readers: flipped bits, other
// bytes, awkward 32- and 64-bit numbers, copied, removed and inserted pieces, a cut end. Changes
// fall into the first `header` bytes, where a file describes itself, seven times of eight.
std::vector<std::byte> mutate(const std::vector<std::byte>& bytes, std::size_t header,
                              MutationRandom& random);

}  // namespace edgerunner::test
