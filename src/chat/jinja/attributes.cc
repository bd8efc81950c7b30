#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "chat/jinja/compare.h"
#include "chat/jinja/elements.h"
#include "chat/jinja/evaluator.h"
#include "chat/jinja/methods.h"
#include "chat/jinja/syntax_tree.h"
#include "chat/jinja/text.h"
#include "chat/jinja/unicode.h"

namespace edgerunner::jinja {
namespace {

constexpr std::array<std::string_view, 11> kLoopAttributes = {
    "index",     "index0", "first",  "last",     "length",  "revindex",
    "revindex0", "depth",  "depth0", "previtem", "nextitem"};

std::string describe(const Value& value) {
  if (value.is_none()) return "none";
  return fmt::format("a value of type '{}'", type_name(value));
}

Value character_at(const Value& text, std::size_t index) {
  const std::string_view rest = text.as_string().substr(byte_offset(text.as_string(), index));
  return Value::string(rest.substr(0, code_point_at(rest, 0).length), text.flag());
}

}  // namespace

const Value* Evaluator::python_attribute(const Value& object, std::string_view name,
                                         Value& storage) {
  const auto found = [&storage](const Value& value) {
    storage = value;
    return &storage;
  };
  const bool is_private = name.starts_with("__") && name.ends_with("__");
  if (is_private || is_mutator(object.kind(), name)) {
    return found(heap_.undefined(fmt::format("'{}' is not to be had by templates", name)));
  }
  if (object.is(Kind::space)) {
    const Dict::Entry* const entry = find_entry(budget_, *object.as<Dict>(), Value::string(name));
    if (entry == nullptr) return nullptr;
    if (name.starts_with("_")) {
      return found(heap_.undefined(fmt::format("'{}' is not to be had by templates", name)));
    }
    return found(entry->value);
  }
  if (object.is(Kind::loop) &&
      std::find(kLoopAttributes.begin(), kLoopAttributes.end(), name) != kLoopAttributes.end()) {
    return found(loop_attribute(*object.as<Loop>(), name));
  }
  if (object.is(Kind::tuple) && object.flag() && (name == "grouper" || name == "list")) {
    return found(object.items()[name == "grouper" ? 0 : 1]);
  }
  if (object.is(Kind::cycler) && name == "current") {
    const Cycler& cycler = *object.as<Cycler>();
    return found(cycler.list.items[cycler.next]);
  }
  if (object.is(Kind::range)) {
    const Range& range = *object.as<Range>();
    if (name == "start") return found(Value::integer(range.start));
    if (name == "stop") return found(Value::integer(range.stop));
    if (name == "step") return found(Value::integer(range.step));
  }
  if (object.is(Kind::macro)) {
    const Macro& macro = *object.as<Macro>();
    const Statement& definition = *macro.definition;
    if (name == "name") return found(macro.name.empty() ? Value() : Value::string(macro.name));
    if (name == "catch_kwargs") return found(definition.reads_kwargs);
    if (name == "catch_varargs") return found(definition.reads_varargs);
    if (name == "caller") return found(definition.reads_caller);
    if (name == "arguments") {
      std::vector<Value> names;
      for (const Parameter& parameter : definition.parameters) {
        names.push_back(Value::string(parameter.name));
      }
      return found(heap_.tuple(names));
    }
  }
  if (object.is(Kind::self)) {
    for (const StatementPtr& statement : *template_) {
      if (statement->kind == StatementKind::block && statement->text == name) {
        return found(Value::object(Kind::block_ref, statement.get()));
      }
    }
  }
  if (const Named<Filter>* const method = find_named(methods_of(object.kind()), name)) {
    return found(Value::object(
        Kind::method,
        heap_.make(Method{.self = object, .call = method->call, .name = method->name})));
  }
  if (object.is_string()) {
    if (const Named<Filter>* const method = find_named(string_class_methods(), name)) {
      return found(Value::object(
          Kind::method,
          heap_.make(Method{.self = object, .call = method->call, .name = method->name})));
    }
  }
  if (is_missing_attribute(object.kind(), name)) {
    fail_unsupported(fmt::format("'{}' of {}", name, describe(object)));
  }
  return nullptr;
}

Value Evaluator::attribute(const Value& object, std::string_view name) {
  if (object.is_undefined()) fail(std::string(object.as<Undefined>()->message));
  Value storage;
  if (const Value* const found = python_attribute(object, name, storage)) return *found;
  if (object.is(Kind::dict)) {
    const Dict::Entry* const entry = find_entry(budget_, *object.as<Dict>(), Value::string(name));
    if (entry != nullptr) return entry->value;
  }
  return heap_.undefined(fmt::format("{} has no attribute '{}'", describe(object), name));
}

Value Evaluator::item(const Value& object, const Value& index) {
  if (object.is_undefined()) fail(std::string(object.as<Undefined>()->message));
  const bool by_position = object.is_string() || object.is_sequence() || object.is(Kind::range);
  if (by_position && index.is_integral()) {
    if (object.is_string()) budget_.step(object.as_string().size() / 64);
    const auto size = static_cast<std::int64_t>(length(object));
    const std::int64_t at = index.as_integer() < 0 ? index.as_integer() + size : index.as_integer();
    if (at >= 0 && at < size) {
      const auto i = static_cast<std::size_t>(at);
      if (object.is_string()) return character_at(object, i);
      if (object.is(Kind::range)) return Value::integer(object.as<Range>()->at(i));
      return object.items()[i];
    }
  } else if (object.is(Kind::dict)) {
    const Dict::Entry* const entry = find_entry(budget_, *object.as<Dict>(), index);
    if (entry != nullptr) return entry->value;
  }
  if (index.is_string()) {
    Value storage;
    if (const Value* const found = python_attribute(object, index.as_string(), storage)) {
      return *found;
    }
  }
  return heap_.undefined(
      fmt::format("{} has no element {}", describe(object), to_repr(budget_, index)));
}

Value Evaluator::call(const Value& callee, const Arguments& arguments) {
  budget_.step();
  switch (callee.kind()) {
    case Kind::function:
      return callee.as<const Named<Function>>()->call(*this, arguments);
    case Kind::method:
      if (callee.as<Method>()->self.is_string()) {
        budget_.step(callee.as<Method>()->self.as_string().size() / 64);
      }
      return callee.as<Method>()->call(*this, callee.as<Method>()->self, arguments);
    case Kind::macro:
      return call_macro(*callee.as<Macro>(), arguments);
    case Kind::loop:
      return call_loop(*callee.as<Loop>(), arguments);
    case Kind::joiner: {
      const Parameters none("a joiner", arguments, {});
      Joiner& joiner = *callee.as<Joiner>();
      const bool first = !joiner.used;
      joiner.used = true;
      return Value::string(first ? std::string_view() : joiner.separator);
    }
    case Kind::block_ref: {
      const Parameters none("a block", arguments, {});
      return captured_block(callee.as<const Statement>()->body, *top_);
    }
    case Kind::undefined:
      fail(std::string(callee.as<Undefined>()->message));
    default:
      fail(fmt::format("{} can't be called", describe(callee)));
  }
}

}  // namespace edgerunner::jinja
