#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace edgerunner {

// A set of pairs of code points that may say yes where it should say no, but never the reverse: one
// bit a hash.
class PairFilter {
 public:
  // Eight bits for each expected pair, so that one answer in eight at most is wrong; 256 KiB, a
  // part of L2, at most.
  explicit PairFilter(std::size_t expected)
      : words_(std::bit_ceil(std::clamp(expected / 8, std::size_t{1}, std::size_t{1} << 15))) {}

  void insert(char32_t left, char32_t right) {
    const std::uint64_t at = hash(left, right);
    words_[at / 64 % words_.size()] |= std::uint64_t{1} << at % 64;
  }
  bool may_contain(char32_t left, char32_t right) const {
    const std::uint64_t at = hash(left, right);
    return (words_[at / 64 % words_.size()] >> at % 64 & 1) != 0;
  }

 private:
  static std::uint64_t hash(char32_t left, char32_t right) {
    const std::uint64_t pair = static_cast<std::uint64_t>(left) << 32 | right;
    return pair * 0x9E3779B97F4A7C15U >> 32;
  }
  std::vector<std::uint64_t> words_;
};

}  // namespace edgerunner
