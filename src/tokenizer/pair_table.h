#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "edgerunner/types.h"

namespace edgerunner {

// Which pairs of neighbouring tokens may be merged, in which order of preference, and into what.
// One probe touches one cache line. Seeded, as StringIndex is.
class PairTable {
 public:
  static constexpr std::uint32_t kNoRank = 0xFFFFFFFF;
  struct Merge {
    std::uint32_t rank;  // lower goes first; kNoRank where the pair doesn't merge
    TokenId result;
  };

  explicit PairTable(std::size_t capacity);

  // A pair that is already there keeps its merge.
  void insert(TokenId left, TokenId right, Merge merge);

  Merge find(TokenId left, TokenId right) const {
    const std::uint64_t wanted = key(left, right);
    for (std::size_t at = home(wanted);; at = (at + 1) & mask_) {
      if (slots_[at].key == wanted) return slots_[at].merge;
      if (slots_[at].key == kEmpty) return {kNoRank, kNoToken};
    }
  }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};  // no key: token ids are not negative
  struct Slot {
    std::uint64_t key = kEmpty;
    Merge merge{kNoRank, kNoToken};
  };

  static std::uint64_t key(TokenId left, TokenId right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
  }
  std::size_t home(std::uint64_t pair) const {
    std::uint64_t hash = (pair ^ seed_) * 0x9E3779B97F4A7C15U;
    hash = (hash ^ (hash >> 32)) * (seed_ | 1);
    return static_cast<std::size_t>(hash >> shift_);
  }

  std::vector<Slot> slots_;
  std::size_t mask_;
  int shift_;
  std::uint64_t seed_;
};

}  // namespace edgerunner
