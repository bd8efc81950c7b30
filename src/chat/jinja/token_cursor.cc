#include "chat/jinja/token_cursor.h"

#include <fmt/format.h>

namespace edgerunner::jinja {
namespace {

std::string describe(const Token& token) {
  switch (token.type) {
    case TokenType::data:
      return "text";
    case TokenType::variable_begin:
      return "'{{'";
    case TokenType::variable_end:
      return "'}}'";
    case TokenType::block_begin:
      return "'{%'";
    case TokenType::block_end:
      return "'%}'";
    case TokenType::string:
      return "a string";
    case TokenType::end:
      return "the end of the template";
    default:
      return fmt::format("'{}'", token.text);
  }
}

}  // namespace

Token TokenCursor::take() {
  if (current().type == TokenType::end) return current();
  return std::move(tokens_[at_++]);
}

bool TokenCursor::skip_symbol(std::string_view text) {
  if (!is_symbol(text)) return false;
  ++at_;
  return true;
}

bool TokenCursor::skip_name(std::string_view text) {
  if (!is_name(text)) return false;
  ++at_;
  return true;
}

void TokenCursor::expect_symbol(std::string_view text) {
  if (!skip_symbol(text)) fail_unexpected(fmt::format("'{}'", text));
}

void TokenCursor::expect_name(std::string_view text) {
  if (!skip_name(text)) fail_unexpected(fmt::format("'{}'", text));
}

std::string TokenCursor::take_name(std::string_view what) {
  if (!is(TokenType::name)) fail_unexpected(what);
  return take().text;
}

void TokenCursor::expect(TokenType type, std::string_view what) {
  if (!is(type)) fail_unexpected(what);
  take();
}

void TokenCursor::fail(std::size_t offset, std::string_view what) const {
  throw source_.error(ErrorCode::invalid_file, offset, what);
}

void TokenCursor::fail_unexpected(std::string_view wanted) const {
  fail(current().offset, fmt::format("expected {}, found {}", wanted, describe(current())));
}

TokenCursor::Level::Level(TokenCursor& cursor) : cursor_(cursor) {
  if (++cursor_.depth_ > kMostNesting) {
    --cursor_.depth_;
    cursor_.fail(cursor_.current().offset, "it nests too deeply");
  }
}

}  // namespace edgerunner::jinja
