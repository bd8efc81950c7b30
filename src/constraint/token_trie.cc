#include "constraint/token_trie.h"

#include <algorithm>
#include <string>
#include <utility>

namespace edgerunner {
namespace {

// Longer tokens (runs of spaces, mostly) are never allowed: the walk keeps a state for each byte.
constexpr std::size_t kLongestToken = 255;

}  // namespace

TokenTrie::TokenTrie(const Tokenizer& tokenizer, std::span<const TokenId> visible)
    : vocab_size_(tokenizer.size()) {
  std::vector<std::pair<std::string, TokenId>> sorted;
  offsets_.push_back(0);
  for (TokenId token = 0; static_cast<std::size_t>(token) < vocab_size_; ++token) {
    if (tokenizer.is_end_of_generation(token)) {
      ends_.push_back(token);
      offsets_.push_back(bytes_.size());
      continue;
    }
    const bool shown = std::find(visible.begin(), visible.end(), token) != visible.end();
    if (shown || !tokenizer.is_control(token)) {
      std::string bytes = tokenizer.token_bytes(token, shown);
      if (!bytes.empty() && bytes.size() <= kLongestToken) {
        bytes_ += bytes;
        sorted.emplace_back(std::move(bytes), token);
      }
    }
    offsets_.push_back(bytes_.size());
  }
  std::sort(sorted.begin(), sorted.end());

  std::vector<std::size_t> open;  // nodes of the token before, that later ones may go on from
  std::string_view before;
  const auto close_to = [&](std::size_t depth) {
    while (open.size() > depth) {
      nodes_[open.back()].skip = static_cast<std::uint32_t>(nodes_.size());
      open.pop_back();
    }
  };
  for (const auto& [bytes, token] : sorted) {
    const auto common = static_cast<std::size_t>(
        std::mismatch(before.begin(), before.end(), bytes.begin(), bytes.end()).first -
        before.begin());
    close_to(common);
    while (open.size() < bytes.size()) {
      open.push_back(nodes_.size());
      nodes_.push_back({.byte = static_cast<std::uint8_t>(bytes[open.size() - 1]),
                        .depth = static_cast<std::uint8_t>(open.size()),
                        .skip = 0,
                        .tokens = static_cast<std::uint32_t>(tokens_.size())});
    }
    tokens_.push_back(token);
    deepest_ = std::max(deepest_, bytes.size());
    before = bytes;
  }
  close_to(0);
  nodes_.push_back(
      {.byte = 0, .depth = 0, .skip = 0, .tokens = static_cast<std::uint32_t>(tokens_.size())});
}

}  // namespace edgerunner
