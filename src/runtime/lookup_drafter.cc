#include "runtime/lookup_drafter.h"

#include <algorithm>

namespace edgerunner {
namespace {

constexpr std::uint32_t kNone = 0;  // no pair ends at the first token

// Enough to find the best of the few places that matter; bounds the time where a pair is
// everywhere.
constexpr int kMostPlaces = 64;
// A longer match says no more.
constexpr std::uint32_t kLongestMatch = 64;
// Two tokens in common are too often chance (docs/speculation.md).
constexpr std::uint32_t kShortestMatch = 3;
// Guesses for each token that matched: what few tokens have in common soon ends.
constexpr std::uint32_t kGuessesPerMatch = 3;

// The pair of tokens that ends at `end`.
std::uint64_t pair_at(std::span<const TokenId> tokens, std::size_t end) {
  return std::uint64_t{static_cast<std::uint32_t>(tokens[end - 1])} << 32 |
         static_cast<std::uint32_t>(tokens[end]);
}

// Tokens before and at the two ends that are the same.
std::uint32_t match_length(std::span<const TokenId> tokens, std::uint32_t end, std::uint32_t last) {
  std::uint32_t length = 0;
  while (length <= end && length < kLongestMatch && tokens[end - length] == tokens[last - length]) {
    ++length;
  }
  return length;
}

}  // namespace

void LookupDrafter::draft(std::span<const DraftRequest> requests) {
  for (const DraftRequest& request : requests) {
    Index& index = sequences_[request.sequence];
    extend(index, request.tokens);
    if (request.most > 0 && request.tokens.size() > 1) guess(index, request);
  }
}

void LookupDrafter::extend(Index& index, std::span<const TokenId> tokens) {
  if (index.before.empty()) index.before.push_back(kNone);
  for (auto end = static_cast<std::uint32_t>(index.before.size()); end < tokens.size(); ++end) {
    std::uint32_t& latest = index.latest[pair_at(tokens, end)];  // kNone where it is new
    index.before.push_back(latest);
    latest = end;
  }
}

void LookupDrafter::guess(const Index& index, const DraftRequest& request) {
  const std::span<const TokenId> tokens = request.tokens;
  const auto last = static_cast<std::uint32_t>(tokens.size() - 1);
  std::uint32_t best = kNone;
  std::uint32_t best_length = 0;
  std::uint32_t end = index.before[last];
  for (int places = 0; end != kNone && places < kMostPlaces; ++places) {
    const std::uint32_t length = match_length(tokens, end, last);
    if (length > std::max(best_length, kShortestMatch - 1)) {
      best = end;
      best_length = length;
    }
    end = index.before[end];
  }
  if (best == kNone) return;
  const std::uint32_t count = std::min(request.most, kGuessesPerMatch * best_length);
  std::vector<TokenId>& guesses = *request.guesses;
  for (std::size_t from = best + 1; guesses.size() < count; ++from) {
    guesses.push_back(from < tokens.size() ? tokens[from] : guesses[from - tokens.size()]);
  }
}

}  // namespace edgerunner
