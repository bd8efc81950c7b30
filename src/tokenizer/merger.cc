#include "tokenizer/merger.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>

namespace edgerunner {
namespace {

// Up to here scanning for the lowest rank costs less than keeping a queue.
constexpr std::size_t kShort = 32;

constexpr std::uint32_t kEnd = 0xFFFFFFFF;

// Ordered by rank, then by position.
std::uint64_t queued(std::uint32_t rank, std::uint32_t position) {
  return static_cast<std::uint64_t>(rank) << 32 | position;
}

}  // namespace

void Merger::merge(std::span<const TokenId> symbols, Scratch& scratch,
                   std::vector<TokenId>& ids) const {
  if (symbols.size() <= kShort) {
    merge_short(symbols, ids);
  } else {
    merge_long(symbols, scratch, ids);
  }
}

void Merger::merge_short(std::span<const TokenId> symbols, std::vector<TokenId>& ids) const {
  std::array<TokenId, kShort> tokens;
  std::array<PairTable::Merge, kShort> merges;  // of each symbol with the next
  std::size_t count = symbols.size();
  std::copy(symbols.begin(), symbols.end(), tokens.begin());
  for (std::size_t i = 0; i + 1 < count; ++i) merges[i] = pairs_.find(tokens[i], tokens[i + 1]);

  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i) {
      if (merges[i].rank < merges[best].rank) best = i;
    }
    if (merges[best].rank == PairTable::kNoRank) break;
    tokens[best] = merges[best].result;
    std::copy(tokens.begin() + best + 2, tokens.begin() + count, tokens.begin() + best + 1);
    --count;
    if (best + 1 < count) {
      std::copy(merges.begin() + best + 2, merges.begin() + count, merges.begin() + best + 1);
      merges[best] = pairs_.find(tokens[best], tokens[best + 1]);
    }
    if (best > 0) merges[best - 1] = pairs_.find(tokens[best - 1], tokens[best]);
  }
  ids.insert(ids.end(), tokens.begin(), tokens.begin() + count);
}

void Merger::merge_long(std::span<const TokenId> symbols, Scratch& scratch,
                        std::vector<TokenId>& ids) const {
  auto& list = scratch.symbols;
  auto& queue = scratch.queue;
  list.clear();
  queue.clear();
  const auto count = static_cast<std::uint32_t>(symbols.size());
  list.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const bool last = i + 1 == count;
    const std::uint32_t rank =
        last ? PairTable::kNoRank : pairs_.find(symbols[i], symbols[i + 1]).rank;
    list.push_back({symbols[i], i == 0 ? kEnd : i - 1, last ? kEnd : i + 1, rank});
    if (rank != PairTable::kNoRank) queue.push_back(queued(rank, i));
  }
  const std::greater<> later;
  std::make_heap(queue.begin(), queue.end(), later);

  const auto update = [&](std::uint32_t position) {
    Scratch::Symbol& symbol = list[position];
    symbol.rank = symbol.next == kEnd ? PairTable::kNoRank
                                      : pairs_.find(symbol.token, list[symbol.next].token).rank;
    if (symbol.rank == PairTable::kNoRank) return;
    queue.push_back(queued(symbol.rank, position));
    std::push_heap(queue.begin(), queue.end(), later);
  };
  while (!queue.empty()) {
    const std::uint64_t top = queue.front();
    std::pop_heap(queue.begin(), queue.end(), later);
    queue.pop_back();
    const auto position = static_cast<std::uint32_t>(top);
    Scratch::Symbol& left = list[position];
    // An entry whose pair has changed since it was queued is out of date.
    if (left.rank != top >> 32) continue;
    Scratch::Symbol& right = list[left.next];
    left.token = pairs_.find(left.token, right.token).result;
    left.next = right.next;
    right.rank = PairTable::kNoRank;
    if (left.next != kEnd) list[left.next].previous = position;
    update(position);
    if (left.previous != kEnd) update(left.previous);
  }
  for (std::uint32_t i = 0; i != kEnd; i = list[i].next) ids.push_back(list[i].token);
}

}  // namespace edgerunner
