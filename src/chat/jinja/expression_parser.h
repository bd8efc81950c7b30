#pragma once

#include <string_view>
#include <vector>

#include "chat/jinja/syntax_tree.h"
#include "chat/jinja/token_cursor.h"

namespace edgerunner::jinja {

// Parses what stands between delimiters: expressions and targets of assignments.
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenCursor& cursor) : cursor_(cursor) {}

  ExpressionPtr expression() { return conditional(); }
  ExpressionPtr without_condition() { return logical_or(); }

  // One expression, or a tuple of several between commas, up to the end of the tag, a closing
  // parenthesis or the word `end`. Where `empty` is false there must be one at least.
  ExpressionPtr tuple(bool with_condition, bool empty = false, std::string_view end = {});

  // `a`, `a, b`, `(a, b)`; `ns.a` where `attributes`. The word `end` ends it.
  Target target(bool attributes, std::string_view end = {});

  // "| name(...)" as often as it comes, around `operand`.
  ExpressionPtr filters(ExpressionPtr operand);
  ExpressionPtr filter(ExpressionPtr operand);  // from its name on

  // While false, a filter or test that doesn't exist is an error at once, as in Jinja; inside `if`
  // it is one when it is reached.
  bool lenient = false;

 private:
  ExpressionPtr make(ExpressionKind kind, std::size_t offset) const;
  ExpressionPtr add(ExpressionPtr parent, ExpressionPtr child) const;

  ExpressionPtr conditional();
  ExpressionPtr logical_or();
  ExpressionPtr logical_and();
  ExpressionPtr logical_not();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filter);
  ExpressionPtr primary();
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr postfix(ExpressionPtr operand);
  ExpressionPtr filters_and_tests(ExpressionPtr operand);
  ExpressionPtr attribute(ExpressionPtr operand);
  ExpressionPtr subscript(ExpressionPtr operand);
  ExpressionPtr index();
  ExpressionPtr test(ExpressionPtr operand);
  void call_arguments(Expression& call);
  std::string dotted_name();
  Target as_target(const Expression& expression) const;

  TokenCursor& cursor_;
};

}  // namespace edgerunner::jinja
