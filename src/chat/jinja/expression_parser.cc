#include "chat/jinja/expression_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "chat/jinja/builtins.h"

namespace edgerunner::jinja {
namespace {

constexpr std::array<std::pair<std::string_view, Operator>, 6> kComparisons = {{
    {"==", Operator::equal},
    {"!=", Operator::not_equal},
    {"<", Operator::less},
    {"<=", Operator::less_equal},
    {">", Operator::greater},
    {">=", Operator::greater_equal},
}};

constexpr std::array<std::pair<std::string_view, Operator>, 7> kArithmetic = {{
    {"+", Operator::add},
    {"-", Operator::subtract},
    {"*", Operator::multiply},
    {"/", Operator::divide},
    {"//", Operator::floor_divide},
    {"%", Operator::modulo},
    {"**", Operator::power},
}};

template <std::size_t n>
std::optional<Operator> find(const std::array<std::pair<std::string_view, Operator>, n>& table,
                             const Token& token) {
  if (token.type != TokenType::symbol) return std::nullopt;
  for (const auto& [text, op] : table) {
    if (token.text == text) return op;
  }
  return std::nullopt;
}

// How deep a chain (a + b + c, a.b.c, x|f|g) may be, which the tree holds as nesting.
constexpr std::uint32_t kMostDepth = 400;

}  // namespace

ExpressionPtr ExpressionParser::make(ExpressionKind kind, std::size_t offset) const {
  auto made = std::make_unique<Expression>();
  made->kind = kind;
  made->offset = offset;
  return made;
}

ExpressionPtr ExpressionParser::add(ExpressionPtr parent, ExpressionPtr child) const {
  if (child) parent->depth = std::max(parent->depth, child->depth + 1);
  if (parent->depth > kMostDepth) cursor_.fail(parent->offset, "it nests too deeply");
  parent->operands.push_back(std::move(child));
  return parent;
}

ExpressionPtr ExpressionParser::conditional() {
  const TokenCursor::Level level(cursor_);
  const std::size_t offset = cursor_.current().offset;
  ExpressionPtr value = logical_or();
  while (cursor_.skip_name("if")) {
    const bool outer = std::exchange(lenient, true);
    ExpressionPtr made = add(make(ExpressionKind::condition, offset), logical_or());
    made = add(std::move(made), std::move(value));
    made = add(std::move(made), cursor_.skip_name("else") ? conditional() : nullptr);
    lenient = outer;
    value = std::move(made);
  }
  return value;
}

ExpressionPtr ExpressionParser::logical_or() {
  ExpressionPtr left = logical_and();
  while (cursor_.is_name("or")) {
    ExpressionPtr made = make(ExpressionKind::logical_or, cursor_.take().offset);
    made = add(std::move(made), std::move(left));
    left = add(std::move(made), logical_and());
  }
  return left;
}

ExpressionPtr ExpressionParser::logical_and() {
  ExpressionPtr left = logical_not();
  while (cursor_.is_name("and")) {
    ExpressionPtr made = make(ExpressionKind::logical_and, cursor_.take().offset);
    made = add(std::move(made), std::move(left));
    left = add(std::move(made), logical_not());
  }
  return left;
}

ExpressionPtr ExpressionParser::logical_not() {
  if (!cursor_.is_name("not")) return comparison();
  const TokenCursor::Level level(cursor_);
  ExpressionPtr made = make(ExpressionKind::logical_not, cursor_.take().offset);
  return add(std::move(made), logical_not());
}

ExpressionPtr ExpressionParser::comparison() {
  ExpressionPtr left = sum();
  ExpressionPtr made;
  while (true) {
    const std::size_t offset = cursor_.current().offset;
    std::optional<Operator> op = find(kComparisons, cursor_.current());
    if (op) {
      cursor_.take();
    } else if (cursor_.skip_name("in")) {
      op = Operator::in;
    } else if (cursor_.is_name("not") &&
               TokenCursor::matches(cursor_.ahead(), TokenType::name, "in")) {
      cursor_.take();
      cursor_.take();
      op = Operator::not_in;
    } else {
      break;
    }
    if (!made) made = add(make(ExpressionKind::compare, offset), std::move(left));
    made->operators.push_back(*op);
    made = add(std::move(made), sum());
  }
  return made ? std::move(made) : std::move(left);
}

ExpressionPtr ExpressionParser::sum() {
  ExpressionPtr left = concatenation();
  while (cursor_.is_symbol("+") || cursor_.is_symbol("-")) {
    const Token token = cursor_.take();
    ExpressionPtr made = add(make(ExpressionKind::binary, token.offset), std::move(left));
    made->operators.push_back(*find(kArithmetic, token));
    left = add(std::move(made), concatenation());
  }
  return left;
}

ExpressionPtr ExpressionParser::concatenation() {
  ExpressionPtr first = product();
  if (!cursor_.is_symbol("~")) return first;
  ExpressionPtr made = make(ExpressionKind::concat, cursor_.current().offset);
  made = add(std::move(made), std::move(first));
  while (cursor_.skip_symbol("~")) made = add(std::move(made), product());
  return made;
}

ExpressionPtr ExpressionParser::product() {
  ExpressionPtr left = power();
  while (cursor_.is_symbol("*") || cursor_.is_symbol("/") || cursor_.is_symbol("//") ||
         cursor_.is_symbol("%")) {
    const Token token = cursor_.take();
    ExpressionPtr made = add(make(ExpressionKind::binary, token.offset), std::move(left));
    made->operators.push_back(*find(kArithmetic, token));
    left = add(std::move(made), power());
  }
  return left;
}

ExpressionPtr ExpressionParser::power() {
  ExpressionPtr left = unary(true);
  while (cursor_.is_symbol("**")) {
    ExpressionPtr made = make(ExpressionKind::binary, cursor_.take().offset);
    made->operators.push_back(Operator::power);
    made = add(std::move(made), std::move(left));
    left = add(std::move(made), unary(true));
  }
  return left;
}

ExpressionPtr ExpressionParser::unary(bool with_filter) {
  ExpressionPtr value;
  if (cursor_.is_symbol("-") || cursor_.is_symbol("+")) {
    const TokenCursor::Level level(cursor_);
    const Token token = cursor_.take();
    value =
        make(token.text == "-" ? ExpressionKind::negative : ExpressionKind::positive, token.offset);
    value = add(std::move(value), unary(false));
  } else {
    value = primary();
  }
  value = postfix(std::move(value));
  return with_filter ? filters_and_tests(std::move(value)) : std::move(value);
}

ExpressionPtr ExpressionParser::primary() {
  const TokenCursor::Level level(cursor_);
  const std::size_t offset = cursor_.current().offset;
  if (cursor_.is_symbol("[")) return list();
  if (cursor_.is_symbol("{")) return dict();
  if (cursor_.skip_symbol("(")) {
    ExpressionPtr inner = tuple(true, true);
    cursor_.expect_symbol(")");
    return inner;
  }
  ExpressionPtr made = make(ExpressionKind::none, offset);
  switch (cursor_.current().type) {
    case TokenType::name: {
      made->text = cursor_.take().text;
      const std::string& word = made->text;
      if (word == "true" || word == "True" || word == "false" || word == "False") {
        made->kind = ExpressionKind::boolean;
        made->boolean = word == "true" || word == "True";
      } else if (word != "none" && word != "None") {
        made->kind = ExpressionKind::name;
      }
      return made;
    }
    case TokenType::string:
      made->kind = ExpressionKind::string;
      while (cursor_.is(TokenType::string)) made->text += cursor_.take().text;
      return made;
    case TokenType::integer:
      made->kind = ExpressionKind::integer;
      made->integer = cursor_.take().integer;
      return made;
    case TokenType::floating:
      made->kind = ExpressionKind::floating;
      made->floating = cursor_.take().floating;
      return made;
    default:
      cursor_.fail_unexpected("an expression");
  }
}

ExpressionPtr ExpressionParser::list() {
  ExpressionPtr made = make(ExpressionKind::list, cursor_.take().offset);
  while (!cursor_.is_symbol("]")) {
    if (!made->operands.empty()) cursor_.expect_symbol(",");
    if (cursor_.is_symbol("]")) break;
    made = add(std::move(made), expression());
  }
  cursor_.expect_symbol("]");
  return made;
}

ExpressionPtr ExpressionParser::dict() {
  ExpressionPtr made = make(ExpressionKind::dict, cursor_.take().offset);
  while (!cursor_.is_symbol("}")) {
    if (!made->operands.empty()) cursor_.expect_symbol(",");
    if (cursor_.is_symbol("}")) break;
    made = add(std::move(made), expression());
    cursor_.expect_symbol(":");
    made = add(std::move(made), expression());
  }
  cursor_.expect_symbol("}");
  return made;
}

ExpressionPtr ExpressionParser::tuple(bool with_condition, bool empty, std::string_view end) {
  ExpressionPtr made = make(ExpressionKind::tuple, cursor_.current().offset);
  bool is_tuple = false;
  while (true) {
    if (!made->operands.empty()) cursor_.expect_symbol(",");
    if (cursor_.is(TokenType::variable_end) || cursor_.is(TokenType::block_end) ||
        cursor_.is_symbol(")") || (!end.empty() && cursor_.is_name(end))) {
      break;
    }
    made = add(std::move(made), with_condition ? expression() : without_condition());
    if (!cursor_.is_symbol(",")) break;
    is_tuple = true;
  }
  if (is_tuple) return made;
  if (!made->operands.empty()) return std::move(made->operands.front());
  if (!empty) cursor_.fail_unexpected("an expression");
  return made;
}

Target ExpressionParser::as_target(const Expression& expression) const {
  Target made;
  made.offset = expression.offset;
  if (expression.kind == ExpressionKind::name) {
    made.name = expression.text;
  } else if (expression.kind == ExpressionKind::tuple) {
    made.is_tuple = true;
    for (const ExpressionPtr& item : expression.operands) made.items.push_back(as_target(*item));
  } else {
    cursor_.fail(expression.offset, "this can't be assigned to");
  }
  return made;
}

Target ExpressionParser::target(bool attributes, std::string_view end) {
  if (attributes && TokenCursor::matches(cursor_.ahead(), TokenType::symbol, ".")) {
    Target made;
    made.offset = cursor_.current().offset;
    made.name = cursor_.take_name("a name");
    cursor_.expect_symbol(".");
    made.attribute = cursor_.take_name("the name of an attribute");
    return made;
  }
  ExpressionPtr made = make(ExpressionKind::tuple, cursor_.current().offset);
  bool is_tuple = false;
  while (true) {
    if (!made->operands.empty()) cursor_.expect_symbol(",");
    if (cursor_.is(TokenType::block_end) || (!end.empty() && cursor_.is_name(end))) break;
    made = add(std::move(made), primary());
    if (!cursor_.is_symbol(",")) break;
    is_tuple = true;
  }
  if (is_tuple) return as_target(*made);
  if (made->operands.empty()) cursor_.fail_unexpected("a name");
  return as_target(*made->operands.front());
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr operand) {
  while (true) {
    if (cursor_.is_symbol(".")) {
      operand = attribute(std::move(operand));
    } else if (cursor_.is_symbol("[")) {
      operand = subscript(std::move(operand));
    } else if (cursor_.is_symbol("(")) {
      operand = add(make(ExpressionKind::call, cursor_.current().offset), std::move(operand));
      call_arguments(*operand);
    } else {
      return operand;
    }
  }
}

ExpressionPtr ExpressionParser::filters_and_tests(ExpressionPtr operand) {
  while (true) {
    if (cursor_.is_symbol("|")) {
      operand = filters(std::move(operand));
    } else if (cursor_.is_name("is")) {
      operand = test(std::move(operand));
    } else if (cursor_.is_symbol("(")) {
      operand = add(make(ExpressionKind::call, cursor_.current().offset), std::move(operand));
      call_arguments(*operand);
    } else {
      return operand;
    }
  }
}

ExpressionPtr ExpressionParser::attribute(ExpressionPtr operand) {
  const std::size_t offset = cursor_.take().offset;
  if (cursor_.is(TokenType::integer)) {
    ExpressionPtr position = make(ExpressionKind::integer, cursor_.current().offset);
    position->integer = cursor_.take().integer;
    ExpressionPtr made = add(make(ExpressionKind::item, offset), std::move(operand));
    return add(std::move(made), std::move(position));
  }
  ExpressionPtr made = add(make(ExpressionKind::attribute, offset), std::move(operand));
  made->text = cursor_.take_name("a name or a number");
  return made;
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr operand) {
  const std::size_t offset = cursor_.take().offset;
  ExpressionPtr indices = make(ExpressionKind::tuple, offset);
  while (!cursor_.is_symbol("]")) {
    if (!indices->operands.empty()) cursor_.expect_symbol(",");
    indices = add(std::move(indices), index());
  }
  cursor_.expect_symbol("]");
  ExpressionPtr made = add(make(ExpressionKind::item, offset), std::move(operand));
  if (indices->operands.size() == 1) {
    return add(std::move(made), std::move(indices->operands.front()));
  }
  for (const ExpressionPtr& item : indices->operands) {
    if (item->kind == ExpressionKind::slice) {
      cursor_.fail(item->offset, "a slice among several indices");
    }
  }
  return add(std::move(made), std::move(indices));
}

ExpressionPtr ExpressionParser::index() {
  const std::size_t offset = cursor_.current().offset;
  const auto ends = [this] {
    return cursor_.is_symbol(":") || cursor_.is_symbol("]") || cursor_.is_symbol(",");
  };
  ExpressionPtr first;
  if (!cursor_.is_symbol(":")) {
    first = expression();
    if (!cursor_.is_symbol(":")) return first;
  }
  cursor_.expect_symbol(":");
  ExpressionPtr made = add(make(ExpressionKind::slice, offset), std::move(first));
  made = add(std::move(made), ends() ? nullptr : expression());
  const bool step = cursor_.skip_symbol(":");
  return add(std::move(made), step && !ends() ? expression() : nullptr);
}

std::string ExpressionParser::dotted_name() {
  std::string name = cursor_.take_name("a name");
  while (cursor_.skip_symbol(".")) {
    name += '.';
    name += cursor_.take_name("a name");
  }
  return name;
}

ExpressionPtr ExpressionParser::filters(ExpressionPtr operand) {
  while (cursor_.skip_symbol("|")) operand = filter(std::move(operand));
  return operand;
}

ExpressionPtr ExpressionParser::filter(ExpressionPtr operand) {
  const std::size_t offset = cursor_.current().offset;
  ExpressionPtr made = add(make(ExpressionKind::filter, offset), std::move(operand));
  made->text = dotted_name();
  if (!lenient && find_filter(made->text) == nullptr) {
    cursor_.fail(offset, fmt::format("there is no filter '{}'", made->text));
  }
  if (cursor_.is_symbol("(")) call_arguments(*made);
  return made;
}

ExpressionPtr ExpressionParser::test(ExpressionPtr operand) {
  const std::size_t offset = cursor_.take().offset;
  const bool negated = cursor_.skip_name("not");
  ExpressionPtr made = add(make(ExpressionKind::test, offset), std::move(operand));
  const std::size_t name_offset = cursor_.current().offset;
  made->text = dotted_name();
  if (!lenient && find_test(made->text) == nullptr) {
    cursor_.fail(name_offset, fmt::format("there is no test '{}'", made->text));
  }
  const Token& next = cursor_.current();
  const bool word = next.type == TokenType::name && next.text != "else" && next.text != "or" &&
                    next.text != "and";
  if (cursor_.is_symbol("(")) {
    call_arguments(*made);
  } else if (word || next.type == TokenType::string || next.type == TokenType::integer ||
             next.type == TokenType::floating || cursor_.is_symbol("[") || cursor_.is_symbol("{")) {
    if (cursor_.is_name("is")) cursor_.fail(next.offset, "tests can't be chained with 'is'");
    Argument argument;
    argument.value = postfix(primary());
    made->depth = std::max(made->depth, argument.value->depth + 1);
    made->arguments.push_back(std::move(argument));
  }
  if (!negated) return made;
  return add(make(ExpressionKind::logical_not, offset), std::move(made));
}

void ExpressionParser::call_arguments(Expression& call) {
  const std::size_t offset = cursor_.current().offset;
  cursor_.expect_symbol("(");
  Argument::Kind latest = Argument::Kind::positional;  // they come in the order of their kinds
  bool comma_needed = false;
  while (!cursor_.is_symbol(")")) {
    if (comma_needed) {
      cursor_.expect_symbol(",");
      if (cursor_.is_symbol(")")) break;
    }
    Argument argument;
    if (cursor_.skip_symbol("*")) {
      argument.kind = Argument::Kind::list;
    } else if (cursor_.skip_symbol("**")) {
      argument.kind = Argument::Kind::dict;
    } else if (cursor_.is(TokenType::name) &&
               TokenCursor::matches(cursor_.ahead(), TokenType::symbol, "=")) {
      argument.kind = Argument::Kind::named;
      argument.name = cursor_.take().text;
      cursor_.take();
    }
    const bool repeats = argument.kind == latest && argument.kind >= Argument::Kind::list;
    const bool named_after_list =
        argument.kind == Argument::Kind::named && latest == Argument::Kind::list;
    if (repeats || (argument.kind < latest && !named_after_list)) {
      cursor_.fail(offset, "the arguments of this call are in a wrong order");
    }
    latest = std::max(latest, argument.kind);
    argument.value = expression();
    call.depth = std::max(call.depth, argument.value->depth + 1);
    if (call.depth > kMostDepth) cursor_.fail(offset, "it nests too deeply");
    call.arguments.push_back(std::move(argument));
    comma_needed = true;
  }
  cursor_.expect_symbol(")");
}

}  // namespace edgerunner::jinja
