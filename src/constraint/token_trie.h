#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edgerunner/tokenizer.h"
#include "edgerunner/types.h"

namespace edgerunner {

// A vocabulary's tokens by their bytes, as a tree laid out in the order in which it is walked.
// Tokens without text are not in it, nor control tokens but those of `visible`, whose spelling is
// part of the text. Immutable.
class TokenTrie {
 public:
  explicit TokenTrie(const Tokenizer& tokenizer, std::span<const TokenId> visible = {});

  struct Node {
    std::uint8_t byte;
    std::uint8_t depth;    // from 1
    std::uint32_t skip;    // the node after all that begin with this one
    std::uint32_t tokens;  // of tokens(): those that end here, up to the next node's first
  };

  std::size_t size() const { return nodes_.size() - 1; }
  const Node& node(std::size_t i) const { return nodes_[i]; }
  std::span<const TokenId> tokens_at(std::size_t i) const {
    return std::span(tokens_).subspan(nodes_[i].tokens, nodes_[i + 1].tokens - nodes_[i].tokens);
  }
  std::size_t deepest() const { return deepest_; }

  // The bytes of a token; empty where it is not in the tree.
  std::string_view bytes_of(TokenId token) const {
    const auto id = static_cast<std::size_t>(token);
    return std::string_view(bytes_).substr(offsets_[id], offsets_[id + 1] - offsets_[id]);
  }

  std::size_t vocab_size() const { return vocab_size_; }
  std::span<const TokenId> ends() const { return ends_; }  // the ends of generation

 private:
  std::vector<Node> nodes_;  // and one behind the last
  std::vector<TokenId> tokens_;
  std::vector<TokenId> ends_;
  std::string bytes_;  // of all tokens, by id
  std::vector<std::size_t> offsets_;
  std::size_t vocab_size_ = 0;
  std::size_t deepest_ = 0;
};

}  // namespace edgerunner
