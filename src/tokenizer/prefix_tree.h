#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "edgerunner/types.h"

namespace edgerunner {

// Finds the tokens that a text begins with, in time that grows with the longest of them.
class PrefixTree {
 public:
  struct Entry {
    std::string_view text;  // not empty; need not outlive the constructor
    TokenId token;
  };
  // Throws Error(unsupported) where the texts have more bytes than 32 bits can count.
  explicit PrefixTree(std::vector<Entry> entries);

  // Calls found(length, token) for each token that `text` begins with, the shortest first.
  template <typename Found>
  void match(std::string_view text, Found found) const {
    if (text.empty()) return;
    std::uint32_t at = roots_[static_cast<std::uint8_t>(text[0])];
    for (std::size_t length = 1; at != kNone; ++length) {
      const Node& node = nodes_[at];
      if (node.token != kNoToken) found(length, node.token);
      if (length == text.size()) return;
      at = child(node, static_cast<std::uint8_t>(text[length]));
    }
  }

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  struct Node {
    std::uint32_t first_child = 0;  // its children stand one after another, ordered by label
    std::uint16_t children = 0;
    std::uint8_t label = 0;
    TokenId token = kNoToken;
  };

  std::uint32_t child(const Node& node, std::uint8_t label) const {
    const auto begin = nodes_.begin() + node.first_child;
    const auto end = begin + node.children;
    const auto found =
        std::lower_bound(begin, end, label,
                         [](const Node& each, std::uint8_t wanted) { return each.label < wanted; });
    return found != end && found->label == label
               ? static_cast<std::uint32_t>(found - nodes_.begin())
               : kNone;
  }

  std::vector<Node> nodes_;
  std::array<std::uint32_t, 256> roots_{};  // by the first byte; kNone where no token begins so
};

}  // namespace edgerunner
