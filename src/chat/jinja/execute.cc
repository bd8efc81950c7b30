#include <fmt/format.h>

#include <new>
#include <utility>

#include "chat/jinja/compare.h"
#include "chat/jinja/evaluator.h"
#include "chat/jinja/text.h"

namespace edgerunner::jinja {

std::string Evaluator::run(const Block& block, const Dict& context) {
  Scope scope;
  scope.variables = context;
  top_ = &scope;
  template_ = &block;
  std::string out;
  out_ = &out;
  try {
    execute(block, scope);
  } catch (const Failure& failure) {
    if (failure.raised) throw Error(ErrorCode::invalid_argument, failure.what);
    throw source_.error(failure.unsupported ? ErrorCode::unsupported : ErrorCode::invalid_argument,
                        at_, failure.what);
  }
  return out;
}

Scope& Evaluator::inner(Scope& parent) {
  Scope* const made = heap_.make(Scope{});
  made->parent = &parent;
  return *made;
}

void Evaluator::write(std::string_view text) {
  budget_.take(text.size());
  out_->append(text);
}

void Evaluator::print(const Value& value) {
  if (value.is_string()) {
    write(value.as_string());
  } else {
    write(to_text(budget_, value));
  }
}

template <typename Body>
Value Evaluator::capture(const Body& body) {
  std::string text;
  std::string* const outer = std::exchange(out_, &text);
  try {
    body();
  } catch (...) {
    out_ = outer;
    throw;
  }
  out_ = outer;
  const Value value = heap_.string(text);
  budget_.give_back(text.size());
  return value;
}

Value Evaluator::captured_block(const Block& block, Scope& scope) {
  return capture([&] { execute(block, inner(scope)); });
}

Evaluator::Flow Evaluator::execute(const Block& block, Scope& scope) {
  for (const StatementPtr& statement : block) {
    if (const Flow flow = execute(*statement, scope); flow != Flow::next) return flow;
  }
  return Flow::next;
}

Evaluator::Flow Evaluator::execute(const Statement& statement, Scope& scope) {
  const Level level(*this);
  at_ = statement.offset;
  switch (statement.kind) {
    case StatementKind::data:
      write(statement.text);
      break;
    case StatementKind::print:
      for (const ExpressionPtr& expression : statement.expressions) {
        const Value value = evaluate(*expression, scope);
        at_ = expression->offset;
        print(value);
      }
      break;
    case StatementKind::set:
    case StatementKind::set_block:
      execute_set(statement, scope);
      break;
    case StatementKind::if_else:
      return execute_if(statement, scope);
    case StatementKind::for_loop:
      return execute_for(statement, scope);
    case StatementKind::break_loop:
      return Flow::break_loop;
    case StatementKind::next_loop:
      return Flow::next_item;
    case StatementKind::macro:
      heap_.set(scope.variables, Value::string(statement.text),
                make_macro(statement, scope, statement.text));
      break;
    case StatementKind::call_block:
      execute_call_block(statement, scope);
      break;
    case StatementKind::filter: {
      const Value body = captured_block(statement.body, scope);
      print(evaluate_filter(*statement.expressions.front(), &body, scope));
      break;
    }
    case StatementKind::with:
      return execute_with(statement, scope);
    case StatementKind::block:
      return execute(statement.body, inner(*top_));
    case StatementKind::scope:
      return execute(statement.body, inner(scope));
    case StatementKind::refused:
      fail_unsupported(statement.text);
  }
  return Flow::next;
}

Evaluator::Flow Evaluator::execute_if(const Statement& statement, Scope& scope) {
  for (const Branch& branch : statement.branches) {
    if (!branch.condition || truth(evaluate(*branch.condition, scope))) {
      return execute(branch.body, scope);
    }
  }
  return Flow::next;
}

Evaluator::Flow Evaluator::execute_with(const Statement& statement, Scope& scope) {
  Scope& made = inner(scope);
  for (const Parameter& parameter : statement.parameters) {
    assign(parameter.target, evaluate(*parameter.value, scope), made);
  }
  return execute(statement.body, made);
}

void Evaluator::execute_set(const Statement& statement, Scope& scope) {
  Value value;
  if (statement.kind == StatementKind::set) {
    value = evaluate(*statement.expressions.front(), scope);
  } else {
    value = captured_block(statement.body, scope);
    if (statement.expressions.front()) {
      value = evaluate_filter(*statement.expressions.front(), &value, scope);
    }
  }
  at_ = statement.offset;
  assign(statement.target, value, scope);
}

void Evaluator::assign(const Target& target, const Value& value, Scope& scope) {
  if (target.is_tuple) {
    const List items = Elements(heap_, value).all(heap_);
    if (items.size != target.items.size()) {
      fail(fmt::format("{} values for {} names", items.size, target.items.size()));
    }
    for (std::size_t i = 0; i < items.size; ++i) assign(target.items[i], items.items[i], scope);
  } else if (target.attribute.empty()) {
    heap_.set(scope.variables, Value::string(target.name), value);
  } else {
    const Value space = lookup(target.name, scope);
    if (!space.is(Kind::space)) {
      fail(fmt::format("'{}' is no namespace, so its attributes can't be set", target.name));
    }
    heap_.set(*space.as<Dict>(), Value::string(target.attribute), value);
  }
}

Value Evaluator::make_macro(const Statement& statement, Scope& scope, std::string_view name) {
  for (Scope* at = &scope; at != nullptr; at = at->parent) at->captured = true;
  return Value::object(Kind::macro,
                       heap_.make(Macro{.definition = &statement, .scope = &scope, .name = name}));
}

void Evaluator::execute_call_block(const Statement& statement, Scope& scope) {
  const Expression& call_expression = *statement.expressions.front();
  const Value callee = evaluate(*call_expression.operands[0], scope);
  Arguments arguments = evaluate_arguments(call_expression, scope);
  if (arguments.find("caller") != nullptr) fail("the argument 'caller' is given twice");
  arguments.named.emplace_back("caller", make_macro(statement, scope, {}));
  at_ = call_expression.offset;
  print(call(callee, arguments));
}

Evaluator::Flow Evaluator::execute_for(const Statement& statement, Scope& scope) {
  const Value iterated = evaluate(*statement.expressions.front(), scope);
  at_ = statement.offset;
  Loop* const loop = heap_.make(Loop{});
  loop->elements = Elements(heap_, iterated);
  loop->statement = &statement;
  loop->scope = &scope;
  return run_loop(*loop);
}

Evaluator::Flow Evaluator::run_loop(Loop& loop) {
  const Statement& statement = *loop.statement;
  bool completed = false;  // any item's body, to its end: else `else` runs
  Scope* scope = &inner(*loop.scope);
  Value item;
  while (next_item(loop, item)) {
    budget_.step();
    if (scope->captured) scope = &inner(*loop.scope);
    scope->variables.size = 0;
    heap_.append(scope->variables, Value::string("loop"), Value::object(Kind::loop, &loop));
    assign(statement.target, item, *scope);
    const Flow flow = execute(statement.body, *scope);
    if (flow == Flow::break_loop) break;
    if (flow == Flow::next) completed = true;
  }
  return completed ? Flow::next : execute(statement.otherwise, inner(*loop.scope));
}

// The next item that the loop's condition admits.
bool Evaluator::find_item(Loop& loop, Value& item) {
  if (loop.counted) {
    if (loop.rest_next == loop.rest.size) return false;
    item = loop.rest.items[loop.rest_next++];
    return true;
  }
  const Expression* const condition = loop.statement->expressions[1].get();
  while (loop.taken < loop.elements.size()) {
    item = loop.elements.at(heap_, loop.taken++);
    if (condition == nullptr) return true;
    budget_.step();
    Scope& scope = inner(*loop.scope);
    assign(loop.statement->target, item, scope);
    if (truth(evaluate(*condition, scope))) return true;
  }
  return false;
}

bool Evaluator::next_item(Loop& loop, Value& item) {
  if (loop.has_next) {
    item = loop.next;
    loop.has_next = false;
  } else if (!find_item(loop, item)) {
    return false;
  }
  ++loop.index0;
  loop.previous = loop.current;
  loop.current = item;
  return true;
}

// All items that are still to come, found now: for the loop's length.
List& Evaluator::rest_of(Loop& loop) {
  if (!loop.counted) {
    std::vector<Value> items;
    for (Value item; find_item(loop, item);) items.push_back(item);
    loop.rest = heap_.copy(items);
    loop.counted = true;
  }
  return loop.rest;
}

Value Evaluator::loop_attribute(Loop& loop, std::string_view name) {
  const auto look_ahead = [&] {
    if (!loop.has_next) loop.has_next = find_item(loop, loop.next);
    return loop.has_next;
  };
  const auto size = [&] {
    if (loop.statement->expressions[1] == nullptr) {
      return static_cast<std::int64_t>(loop.elements.size());
    }
    const auto ahead = static_cast<std::int64_t>(loop.has_next ? 1 : 0);
    const auto rest = static_cast<std::int64_t>(rest_of(loop).size - loop.rest_next);
    return loop.index0 + 1 + ahead + rest;
  };
  if (name == "index") return Value::integer(loop.index0 + 1);
  if (name == "index0") return Value::integer(loop.index0);
  if (name == "first") return loop.index0 == 0;
  if (name == "last") return !look_ahead();
  if (name == "length") return Value::integer(size());
  if (name == "revindex") return Value::integer(size() - loop.index0);
  if (name == "revindex0") return Value::integer(size() - loop.index0 - 1);
  if (name == "depth") return Value::integer(loop.depth0 + 1);
  if (name == "depth0") return Value::integer(loop.depth0);
  if (name == "previtem") {
    return loop.index0 == 0 ? heap_.undefined("there is no previous item") : loop.previous;
  }
  return look_ahead() ? loop.next : heap_.undefined("there is no next item");
}

Value Evaluator::call_loop(const Loop& loop, const Arguments& arguments) {
  const Parameters parameters("loop", arguments, {"iterable"}, 1);
  if (!loop.statement->recursive) {
    fail("a loop can only be called where its tag says 'recursive'");
  }
  const Level level(*this);
  Loop* const inner_loop = heap_.make(Loop{});
  inner_loop->elements = Elements(heap_, parameters[0]);
  inner_loop->statement = loop.statement;
  inner_loop->scope = loop.scope;
  inner_loop->depth0 = loop.depth0 + 1;
  return capture([&] { run_loop(*inner_loop); });
}

Value Evaluator::call_macro(const Macro& macro, const Arguments& arguments) {
  const Level level(*this);
  const Statement& definition = *macro.definition;
  const auto& parameters = definition.parameters;
  const std::string_view name = macro.name.empty() ? "caller" : macro.name;
  std::vector<std::pair<std::string_view, Value>> named = arguments.named;
  const auto take = [&named](std::string_view key, Value& value) {
    for (auto it = named.begin(); it != named.end(); ++it) {
      if (it->first != key) continue;
      value = it->second;
      named.erase(it);
      return true;
    }
    return false;
  };

  Scope& scope = inner(*macro.scope);
  bool explicit_caller = false;
  std::vector<bool> given(parameters.size(), false);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].name == "caller") explicit_caller = true;
    Value value;
    if (i < arguments.positional.size()) {
      value = arguments.positional[i];
      given[i] = true;
    } else {
      given[i] = take(parameters[i].name, value);
    }
    if (given[i]) heap_.set(scope.variables, Value::string(parameters[i].name), value);
  }
  if (definition.reads_caller && !explicit_caller) {
    Value caller;
    if (!take("caller", caller) || caller.is_none()) {
      caller = heap_.undefined("there is no caller: the macro was not called by a call block");
    }
    heap_.set(scope.variables, Value::string("caller"), caller);
  }
  if (definition.reads_kwargs) {
    Dict* const rest = heap_.dict(named.size());
    for (const auto& [key, value] : named) heap_.append(*rest, Value::string(key), value);
    heap_.set(scope.variables, Value::string("kwargs"), Value::object(Kind::dict, rest));
  } else if (!named.empty()) {
    fail(fmt::format("the macro '{}' has no parameter '{}'", name, named.front().first));
  }
  const std::span<const Value> positional = arguments.positional;
  if (definition.reads_varargs) {
    const auto rest = positional.subspan(std::min(positional.size(), parameters.size()));
    heap_.set(scope.variables, Value::string("varargs"), heap_.tuple(rest));
  } else if (positional.size() > parameters.size()) {
    fail(fmt::format("the macro '{}' takes at most {} arguments", name, parameters.size()));
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (given[i]) continue;
    const Value value =
        parameters[i].value
            ? evaluate(*parameters[i].value, scope)
            : heap_.undefined(fmt::format("parameter '{}' was not given", parameters[i].name));
    heap_.set(scope.variables, Value::string(parameters[i].name), value);
  }
  return capture([&] { execute(definition.body, scope); });
}

}  // namespace edgerunner::jinja
