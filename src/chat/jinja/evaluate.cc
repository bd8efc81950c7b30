#include <fmt/format.h>

#include <new>

#include "chat/jinja/builtins.h"
#include "chat/jinja/compare.h"
#include "chat/jinja/evaluator.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/text.h"
#include "chat/jinja/text_builder.h"

namespace edgerunner::jinja {
namespace {

// Enough for macros that call themselves some 250 times, as often as Jinja can; a level takes about
// half a kilobyte of stack.
constexpr int kMostLevels = 2500;

}  // namespace

Evaluator::Level::Level(Evaluator& evaluator) : evaluator_(evaluator) {
  evaluator.budget_.step();
  if (++evaluator_.depth_ > kMostLevels) {
    --evaluator_.depth_;
    fail("it calls itself without end, or nests too deeply");
  }
}

Value Evaluator::evaluate(const Expression& expression, Scope& scope) {
  const Level level(*this);
  at_ = expression.offset;
  return evaluate_kind(expression, scope);
}

Value Evaluator::evaluate_kind(const Expression& expression, Scope& scope) {
  const auto operand = [&](std::size_t i) { return evaluate(*expression.operands[i], scope); };
  switch (expression.kind) {
    case ExpressionKind::none:
      return {};
    case ExpressionKind::boolean:
      return expression.boolean;
    case ExpressionKind::integer:
      return Value::integer(expression.integer);
    case ExpressionKind::floating:
      return expression.floating;
    case ExpressionKind::string:
      return Value::string(expression.text);
    case ExpressionKind::name:
      return lookup(expression.text, scope);
    case ExpressionKind::tuple:
    case ExpressionKind::list:
      return evaluate_items(expression, scope);
    case ExpressionKind::dict:
      return evaluate_dict(expression, scope);
    case ExpressionKind::attribute: {
      const Value object = operand(0);
      at_ = expression.offset;
      return attribute(object, expression.text);
    }
    case ExpressionKind::item:
      return evaluate_item(expression, scope);
    case ExpressionKind::slice:
      fail_unsupported("a slice that is no index");
    case ExpressionKind::call:
      return evaluate_call(expression, scope);
    case ExpressionKind::filter:
      return evaluate_filter(expression, nullptr, scope);
    case ExpressionKind::test: {
      const Value value = operand(0);
      const Arguments arguments = evaluate_arguments(expression, scope);
      at_ = expression.offset;
      return apply_test(expression.text, value, arguments);
    }
    case ExpressionKind::condition:
      return evaluate_condition(expression, scope);
    case ExpressionKind::logical_or: {
      const Value left = operand(0);
      return truth(left) ? left : operand(1);
    }
    case ExpressionKind::logical_and: {
      const Value left = operand(0);
      return truth(left) ? operand(1) : left;
    }
    case ExpressionKind::logical_not:
      return !truth(operand(0));
    case ExpressionKind::negative:
    case ExpressionKind::positive: {
      const Value value = operand(0);
      at_ = expression.offset;
      return with_sign(value, expression.kind == ExpressionKind::negative);
    }
    case ExpressionKind::binary: {
      const Value left = operand(0);
      const Value right = operand(1);
      at_ = expression.offset;
      return binary(heap_, expression.operators.front(), left, right);
    }
    case ExpressionKind::concat:
      return evaluate_concat(expression, scope);
    case ExpressionKind::compare:
      return evaluate_compare(expression, scope);
  }
  return {};
}

Value Evaluator::lookup(std::string_view name, const Scope& scope) {
  const Value key = Value::string(name);
  for (const Scope* at = &scope; at != nullptr; at = at->parent) {
    if (const Dict::Entry* const entry = find_entry(budget_, at->variables, key)) {
      return entry->value;
    }
  }
  if (const Named<Function>* const function = find_function(name)) {
    return Value::object(Kind::function, function);
  }
  if (name == "self") return Value::object(Kind::self, nullptr);
  return heap_.undefined(fmt::format("'{}' is undefined", name));
}

Value Evaluator::evaluate_items(const Expression& expression, Scope& scope) {
  List list{.items = budget_.array<Value>(expression.operands.size()),
            .size = expression.operands.size()};
  for (std::size_t i = 0; i < list.size; ++i) {
    new (list.items + i) Value(evaluate(*expression.operands[i], scope));
  }
  return Value::object(expression.kind == ExpressionKind::list ? Kind::list : Kind::tuple,
                       heap_.make(list));
}

Value Evaluator::evaluate_dict(const Expression& expression, Scope& scope) {
  Dict* const dict = heap_.dict(expression.operands.size() / 2);
  for (std::size_t i = 0; i < expression.operands.size(); i += 2) {
    const Value key = evaluate(*expression.operands[i], scope);
    const Value value = evaluate(*expression.operands[i + 1], scope);
    check_hashable(key);
    heap_.set(*dict, key, value);
  }
  return Value::object(Kind::dict, dict);
}

Value Evaluator::evaluate_item(const Expression& expression, Scope& scope) {
  const Value object = evaluate(*expression.operands[0], scope);
  const Expression& index = *expression.operands[1];
  if (index.kind == ExpressionKind::slice) return evaluate_slice(object, index, scope);
  const Value key = evaluate(index, scope);
  at_ = expression.offset;
  return item(object, key);
}

Value Evaluator::evaluate_slice(const Value& object, const Expression& slice, Scope& scope) {
  Value bounds[3];
  for (std::size_t i = 0; i < 3; ++i) {
    if (slice.operands[i]) bounds[i] = evaluate(*slice.operands[i], scope);
  }
  at_ = slice.offset;
  return jinja::slice(heap_, object, bounds[0], bounds[1], bounds[2]);
}

Value Evaluator::evaluate_condition(const Expression& expression, Scope& scope) {
  if (truth(evaluate(*expression.operands[0], scope))) {
    return evaluate(*expression.operands[1], scope);
  }
  if (expression.operands[2]) return evaluate(*expression.operands[2], scope);
  return heap_.undefined("the inline 'if' was false, and there is no 'else'");
}

Value Evaluator::evaluate_concat(const Expression& expression, Scope& scope) {
  TextBuilder text(heap_);
  for (const ExpressionPtr& part : expression.operands) {
    const Value value = evaluate(*part, scope);
    if (value.is_string()) {
      text += value.as_string();
    } else {
      text += to_text(budget_, value);
    }
  }
  return text.value();
}

Value Evaluator::evaluate_compare(const Expression& expression, Scope& scope) {
  Value left = evaluate(*expression.operands[0], scope);
  for (std::size_t i = 0; i < expression.operators.size(); ++i) {
    const Value right = evaluate(*expression.operands[i + 1], scope);
    at_ = expression.offset;
    if (!compare(heap_, expression.operators[i], left, right)) return false;
    left = right;
  }
  return true;
}

Arguments Evaluator::evaluate_arguments(const Expression& expression, Scope& scope) {
  Arguments arguments;
  const auto name = [&](std::string_view key, const Value& value) {
    if (arguments.find(key) != nullptr) fail(fmt::format("the argument '{}' is given twice", key));
    arguments.named.emplace_back(key, value);
  };
  for (const Argument& argument : expression.arguments) {
    const Value value = evaluate(*argument.value, scope);
    switch (argument.kind) {
      case Argument::Kind::positional:
        arguments.positional.push_back(value);
        break;
      case Argument::Kind::named:
        name(argument.name, value);
        break;
      case Argument::Kind::list: {
        const List items = Elements(heap_, value).all(heap_);
        arguments.positional.insert(arguments.positional.end(), items.items,
                                    items.items + items.size);
        break;
      }
      case Argument::Kind::dict:
        if (!value.is(Kind::dict)) fail("what follows '**' must be a dict");
        budget_.step(value.as<Dict>()->size * value.as<Dict>()->size / 16);
        for (const auto& [key, item] : value.as<Dict>()->all()) {
          if (!key.is_string()) fail("the keys of what follows '**' must be strings");
          name(key.as_string(), item);
        }
        break;
    }
  }
  return arguments;
}

Value Evaluator::evaluate_call(const Expression& expression, Scope& scope) {
  const Value callee = evaluate(*expression.operands[0], scope);
  const Arguments arguments = evaluate_arguments(expression, scope);
  at_ = expression.offset;
  return call(callee, arguments);
}

Value Evaluator::evaluate_filter(const Expression& expression, const Value* piped, Scope& scope) {
  Value value;
  if (!expression.operands[0]) {
    value = *piped;
  } else if (piped != nullptr) {
    const Level level(*this);
    value = evaluate_filter(*expression.operands[0], piped, scope);
  } else {
    value = evaluate(*expression.operands[0], scope);
  }
  const Arguments arguments = evaluate_arguments(expression, scope);
  at_ = expression.offset;
  return apply_filter(expression.text, value, arguments);
}

Value Evaluator::apply_filter(std::string_view name, const Value& value,
                              const Arguments& arguments) {
  const Filter filter = find_filter(name);
  if (filter == nullptr) fail(fmt::format("there is no filter '{}'", name));
  budget_.step(1 + (value.is_string() ? value.as_string().size() / 64 : 0));
  return filter(*this, value, arguments);
}

bool Evaluator::apply_test(std::string_view name, const Value& value, const Arguments& arguments) {
  const Test test = find_test(name);
  if (test == nullptr) fail(fmt::format("there is no test '{}'", name));
  budget_.step();
  return test(*this, value, arguments);
}

}  // namespace edgerunner::jinja
