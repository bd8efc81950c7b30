#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "edgerunner/types.h"
#include "tokenizer/pair_table.h"

namespace edgerunner {

// Byte-pair encoding proper: merges the neighbouring pair of the lowest rank, the leftmost of equal
// ones, until none is left. O(n log n) in the number of symbols, without recursion.
class Merger {
 public:
  explicit Merger(PairTable pairs) : pairs_(std::move(pairs)) {}

  // Memory to be used again from word to word; belongs to one call of encode.
  struct Scratch {
    struct Symbol {
      TokenId token;
      std::uint32_t previous;
      std::uint32_t next;
      std::uint32_t rank;  // of the pair with the next symbol
    };
    std::vector<Symbol> symbols;
    std::vector<std::uint64_t> queue;
  };

  // Appends what `symbols` merge into.
  void merge(std::span<const TokenId> symbols, Scratch& scratch, std::vector<TokenId>& ids) const;

 private:
  void merge_short(std::span<const TokenId> symbols, std::vector<TokenId>& ids) const;
  void merge_long(std::span<const TokenId> symbols, Scratch& scratch,
                  std::vector<TokenId>& ids) const;

  PairTable pairs_;
};

}  // namespace edgerunner
