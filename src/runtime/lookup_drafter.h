#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "edgerunner/types.h"
#include "runtime/drafter.h"

namespace edgerunner {

// Guesses that a sequence goes on as it did the last time that it stood where it stands: it looks
// for the longest earlier occurrence of its last tokens, as LZ77 does (Ziv and Lempel 1977), of
// equally long ones the latest, and copies what followed. A copy may run into itself, so that what
// repeats with a short period is guessed for any length.
class LookupDrafter : public Drafter {
 public:
  void draft(std::span<const DraftRequest> requests) override;
  void forget(std::uint64_t sequence) override { sequences_.erase(sequence); }

 private:
  // Where pairs of tokens occur in a sequence.
  struct Index {
    std::unordered_map<std::uint64_t, std::uint32_t> latest;  // the end of a pair's last occurrence
    std::vector<std::uint32_t> before;  // the same pair's end before that; [indexed]
  };

  static void extend(Index& index, std::span<const TokenId> tokens);
  static void guess(const Index& index, const DraftRequest& request);

  std::unordered_map<std::uint64_t, Index> sequences_;
};

}  // namespace edgerunner
