#include "chat/jinja/find_names.h"

#include <algorithm>

namespace edgerunner::jinja {
namespace {

bool reads(const Expression& expression, std::string_view name) {
  if (expression.kind == ExpressionKind::name && expression.text == name) return true;
  const auto in_operand = [name](const ExpressionPtr& part) { return part && reads(*part, name); };
  const auto in_argument = [name](const Argument& part) { return reads(*part.value, name); };
  return std::any_of(expression.operands.begin(), expression.operands.end(), in_operand) ||
         std::any_of(expression.arguments.begin(), expression.arguments.end(), in_argument);
}

bool reads(const ExpressionPtr& expression, std::string_view name) {
  return expression && reads(*expression, name);
}

bool reads(const Statement& statement, std::string_view name) {
  const auto in_branch = [name](const Branch& branch) {
    return reads(branch.condition, name) || reads_name(branch.body, name);
  };
  const auto in_parameter = [name](const Parameter& part) { return reads(part.value, name); };
  return std::any_of(statement.expressions.begin(), statement.expressions.end(),
                     [name](const ExpressionPtr& part) { return reads(part, name); }) ||
         std::any_of(statement.branches.begin(), statement.branches.end(), in_branch) ||
         std::any_of(statement.parameters.begin(), statement.parameters.end(), in_parameter) ||
         reads_name(statement.body, name) || reads_name(statement.otherwise, name);
}

}  // namespace

bool reads_name(const Block& block, std::string_view name) {
  for (const StatementPtr& statement : block) {
    if (reads(*statement, name)) return true;
    if (statement->kind == StatementKind::set && statement->target.name == name &&
        statement->target.attribute.empty()) {
      return false;
    }
  }
  return false;
}

}  // namespace edgerunner::jinja
