#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/executor.h"

namespace edgerunner::test {

// Logits by token, [tokens][vocab].
using LogitRows = std::vector<std::vector<float>>;

// Several sequences that go through an executor side by side; each has its own pages.
struct Sequence {
  std::vector<TokenId> tokens;
  std::vector<PageId> pages;
  std::uint32_t done = 0;
  LogitRows logits = {};
};

inline std::vector<PageId> page_range(PageId first, std::uint32_t count) {
  std::vector<PageId> pages(count);
  for (std::uint32_t i = 0; i < count; ++i) pages[i] = first + i;
  return pages;
}

// One batch: the next counts[i] tokens of sequences[i]; 0 leaves it out.
inline void step(Executor& executor, std::uint32_t vocab, std::span<Sequence> sequences,
                 std::span<const std::uint32_t> counts) {
  std::vector<TokenId> tokens;
  std::vector<SequenceSlice> slices;
  std::vector<std::uint32_t> wanted;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const Sequence& s = sequences[i];
    if (counts[i] == 0) continue;
    tokens.insert(tokens.end(), s.tokens.begin() + s.done, s.tokens.begin() + s.done + counts[i]);
    slices.push_back({counts[i], s.done, s.pages});
  }
  for (std::uint32_t row = 0; row < tokens.size(); ++row) wanted.push_back(row);
  std::vector<float> logits(tokens.size() * vocab);
  executor.forward({tokens, slices, wanted}, logits);
  auto next = logits.begin();
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    for (std::uint32_t row = 0; row < counts[i]; ++row, next += vocab) {
      sequences[i].logits.emplace_back(next, next + vocab);
    }
    sequences[i].done += counts[i];
  }
}

// The whole sequence in chunks of at most `chunk`.
inline LogitRows run(Executor& executor, std::uint32_t vocab, std::span<const TokenId> tokens,
                     std::uint32_t chunk, std::vector<PageId> pages) {
  Sequence sequence{{tokens.begin(), tokens.end()}, std::move(pages)};
  while (sequence.done < tokens.size()) {
    const auto left = static_cast<std::uint32_t>(tokens.size()) - sequence.done;
    const std::uint32_t count = left < chunk ? left : chunk;
    step(executor, vocab, {&sequence, 1}, {&count, 1});
  }
  return sequence.logits;
}

}  // namespace edgerunner::test
