#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edgerunner/error.h"
#include "edgerunner/tokenizer.h"

namespace edgerunner::test {

// A tokenizer for scripts: ids 0 to 255 are single bytes, so that characters can be split in any
// way; then the end of the text; then longer tokens as given. Text is encoded byte by byte.
class ScriptedTokenizer : public Tokenizer {
 public:
  static constexpr TokenId kEnd = 256;
  static constexpr TokenId kFirstPiece = 257;

  explicit ScriptedTokenizer(std::vector<std::string> pieces = {}) : pieces_(std::move(pieces)) {}

  std::vector<TokenId> encode(std::string_view text, const EncodeOptions&) const override {
    std::vector<TokenId> tokens;
    for (const char c : text) tokens.push_back(static_cast<std::uint8_t>(c));
    return tokens;
  }

  std::string token_bytes(TokenId token, bool) const override {
    if (token < 0 || static_cast<std::size_t>(token) >= size()) {
      throw Error(ErrorCode::invalid_argument, "no such token");
    }
    if (token < kEnd) return std::string(1, static_cast<char>(token));
    return token == kEnd ? "" : pieces_[token - kFirstPiece];
  }

  std::string decode(std::span<const TokenId> tokens, bool special) const override {
    std::string text;
    for (const TokenId token : tokens) text += token_bytes(token, special);
    return text;
  }

  std::size_t size() const override { return kFirstPiece + pieces_.size(); }
  TokenId bos() const override { return kNoToken; }
  TokenId eos() const override { return kEnd; }
  bool adds_bos() const override { return false; }
  bool adds_eos() const override { return false; }
  bool is_end_of_generation(TokenId token) const override { return token == kEnd; }
  bool is_control(TokenId token) const override { return token == kEnd; }
  TokenId find(std::string_view text) const override {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      if (pieces_[i] == text) return kFirstPiece + static_cast<TokenId>(i);
    }
    return kNoToken;
  }

 private:
  std::vector<std::string> pieces_;
};

}  // namespace edgerunner::test
