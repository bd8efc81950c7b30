#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "chat/jinja/arguments.h"
#include "chat/jinja/budget.h"
#include "chat/jinja/heap.h"
#include "chat/jinja/loop.h"
#include "chat/jinja/scope.h"
#include "chat/jinja/source.h"
#include "chat/jinja/syntax_tree.h"
#include "chat/jinja/value.h"
#include "chat/local_time.h"

namespace edgerunner::jinja {

// Runs a template once. Failures become Errors with line and column here.
class Evaluator {
 public:
  Evaluator(const Source& source, Budget& budget, const LocalTime& now)
      : source_(source), heap_(budget), budget_(budget), now_(now) {}

  // The text that the template gives with the variables of `context`.
  std::string run(const Block& block, const Dict& context);

  // For what templates call.
  Heap& heap() { return heap_; }
  Budget& budget() { return budget_; }
  const LocalTime& now() const { return now_; }
  Value call(const Value& callee, const Arguments& arguments);
  Value attribute(const Value& object, std::string_view name);  // object.name
  Value item(const Value& object, const Value& index);          // object[index]
  // An attribute that the object has in Python; null where there is none.
  const Value* python_attribute(const Value& object, std::string_view name, Value& storage);
  Value apply_filter(std::string_view name, const Value& value, const Arguments& arguments);
  bool apply_test(std::string_view name, const Value& value, const Arguments& arguments);

 private:
  enum class Flow { next, break_loop, next_item };

  // Counts how deep the evaluation is in itself.
  class Level {
   public:
    explicit Level(Evaluator& evaluator);
    ~Level() { --evaluator_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Evaluator& evaluator_;
  };

  // Statements (execute.cc, execute_loop.cc).
  Flow execute(const Block& block, Scope& scope);
  Flow execute(const Statement& statement, Scope& scope);
  Flow execute_if(const Statement& statement, Scope& scope);
  Flow execute_for(const Statement& statement, Scope& scope);
  Flow execute_with(const Statement& statement, Scope& scope);
  Flow run_loop(Loop& loop);
  bool next_item(Loop& loop, Value& item);
  bool find_item(Loop& loop, Value& item);
  void execute_set(const Statement& statement, Scope& scope);
  void execute_call_block(const Statement& statement, Scope& scope);
  void write(std::string_view text);
  void print(const Value& value);
  void assign(const Target& target, const Value& value, Scope& scope);
  // What a block writes, as a string.
  template <typename Body>
  Value capture(const Body& body);
  Value captured_block(const Block& block, Scope& scope);
  Scope& inner(Scope& parent);
  Value make_macro(const Statement& statement, Scope& scope, std::string_view name);

  // Expressions (evaluate.cc).
  Value evaluate(const Expression& expression, Scope& scope);
  Value evaluate_kind(const Expression& expression, Scope& scope);
  Value lookup(std::string_view name, const Scope& scope);
  Value evaluate_items(const Expression& expression, Scope& scope);
  Value evaluate_dict(const Expression& expression, Scope& scope);
  Value evaluate_item(const Expression& expression, Scope& scope);
  Value evaluate_slice(const Value& object, const Expression& slice, Scope& scope);
  Value evaluate_condition(const Expression& expression, Scope& scope);
  Value evaluate_concat(const Expression& expression, Scope& scope);
  Value evaluate_compare(const Expression& expression, Scope& scope);
  Value evaluate_call(const Expression& expression, Scope& scope);
  Value evaluate_filter(const Expression& expression, const Value* piped, Scope& scope);
  Arguments evaluate_arguments(const Expression& expression, Scope& scope);

  // Calls (call.cc).
  Value call_macro(const Macro& macro, const Arguments& arguments);
  Value call_loop(const Loop& loop, const Arguments& arguments);
  Value loop_attribute(Loop& loop, std::string_view name);
  List& rest_of(Loop& loop);

  const Source& source_;
  Heap heap_;
  Budget& budget_;
  const LocalTime& now_;
  Scope* top_ = nullptr;
  std::string* out_ = nullptr;
  const Block* template_ = nullptr;
  std::size_t at_ = 0;  // in the source: what is being evaluated, for errors
  int depth_ = 0;
};

}  // namespace edgerunner::jinja
