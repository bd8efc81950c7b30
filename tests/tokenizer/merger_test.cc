#include "tokenizer/merger.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>
#include <vector>

namespace edgerunner {
namespace {

using Merges = std::map<std::pair<TokenId, TokenId>, PairTable::Merge>;

// The definition, in quadratic time.
std::vector<TokenId> merge_plainly(std::vector<TokenId> symbols, const Merges& merges) {
  while (true) {
    std::size_t best = symbols.size();
    PairTable::Merge lowest{PairTable::kNoRank, kNoToken};
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = merges.find({symbols[i], symbols[i + 1]});
      if (found == merges.end() || found->second.rank >= lowest.rank) continue;
      best = i;
      lowest = found->second;
    }
    if (best == symbols.size()) return symbols;
    symbols[best] = lowest.result;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(Merger, AgreesWithTheDefinitionOnRandomMergesOfAnyLength) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const int letters = 1 + static_cast<int>(random() % 4);
    Merges merges;
    PairTable table(64);
    for (std::uint32_t rank = 0; rank < 60; ++rank) {
      const auto below = static_cast<unsigned>(letters) + rank;
      const auto left = static_cast<TokenId>(random() % below);
      const auto right = static_cast<TokenId>(random() % below);
      const PairTable::Merge merge{rank, letters + static_cast<TokenId>(rank)};
      merges.insert({{left, right}, merge});
      table.insert(left, right, merge);
    }
    const Merger merger(std::move(table));
    Merger::Scratch scratch;
    for (const std::size_t length : {0U, 1U, 2U, 3U, 31U, 32U, 33U, 34U, 200U}) {
      std::vector<TokenId> symbols(length);
      for (TokenId& symbol : symbols) {
        symbol = static_cast<TokenId>(random() % static_cast<unsigned>(letters));
      }
      std::vector<TokenId> ids;
      merger.merge(symbols, scratch, ids);
      ASSERT_EQ(ids, merge_plainly(symbols, merges)) << "round " << round << ", length " << length;
    }
  }
}

}  // namespace
}  // namespace edgerunner
