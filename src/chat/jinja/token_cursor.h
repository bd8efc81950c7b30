#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chat/jinja/parser.h"
#include "chat/jinja/source.h"
#include "chat/jinja/token.h"

namespace edgerunner::jinja {

// A position in a template's tokens, and the errors of parsing them.
class TokenCursor {
 public:
  TokenCursor(const Source& source, std::vector<Token> tokens)
      : source_(source), tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  Token take();

  bool is(TokenType type) const { return current().type == type; }
  bool is_symbol(std::string_view text) const {
    return matches(current(), TokenType::symbol, text);
  }
  bool is_name(std::string_view text) const { return matches(current(), TokenType::name, text); }
  bool skip_symbol(std::string_view text);
  bool skip_name(std::string_view text);
  void expect_symbol(std::string_view text);
  void expect_name(std::string_view text);
  std::string take_name(std::string_view what);
  void expect(TokenType type, std::string_view what);

  static bool matches(const Token& token, TokenType type, std::string_view text) {
    return token.type == type && token.text == text;
  }

  [[noreturn]] void fail(std::size_t offset, std::string_view what) const;
  [[noreturn]] void fail_unexpected(std::string_view wanted) const;

  // Counts how deep the parser is in itself, for as long as it lives.
  class Level {
   public:
    explicit Level(TokenCursor& cursor);
    ~Level() { --cursor_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    TokenCursor& cursor_;
  };

 private:
  const Source& source_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::uint32_t depth_ = 0;
};

}  // namespace edgerunner::jinja
