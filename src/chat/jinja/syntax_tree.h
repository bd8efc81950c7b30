#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace edgerunner::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

enum class ExpressionKind : std::uint8_t {
  none,
  boolean,
  integer,
  floating,
  string,     // text
  name,       // text
  tuple,      // operands
  list,       // operands
  dict,       // operands: key, value, key, value, ...
  attribute,  // operands[0].text
  item,       // operands[0][operands[1]]
  slice,      // operands: begin, end, step, null where left out; only as an item's index
  call,       // operands[0](arguments)
  filter,     // operands[0]|text(arguments); no operand at the head of a filter block
  test,       // operands[0] is text(arguments)
  condition,  // operands[1] if operands[0] else operands[2], which may be null
  logical_or,
  logical_and,
  logical_not,
  negative,
  positive,
  binary,   // operands[0] op operands[1]
  concat,   // operands, joined as strings
  compare,  // operands[0] ops[0] operands[1] ops[1] operands[2] ...
};

enum class Operator : std::uint8_t {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in,
};

// An argument of a call: f(value), f(name=value), f(*value) or f(**value).
struct Argument {
  enum class Kind : std::uint8_t { positional, named, list, dict };
  Kind kind = Kind::positional;
  std::string name;
  ExpressionPtr value;
};

struct Expression {
  ExpressionKind kind = ExpressionKind::none;
  std::size_t offset = 0;   // in the source
  std::uint32_t depth = 1;  // of the tree below, itself included
  bool boolean = false;
  std::int64_t integer = 0;
  double floating = 0;
  std::string text;
  std::vector<ExpressionPtr> operands;
  std::vector<Operator> operators;
  std::vector<Argument> arguments;
};

struct Statement;
using StatementPtr = std::unique_ptr<Statement>;
using Block = std::vector<StatementPtr>;

enum class StatementKind : std::uint8_t {
  data,        // text
  print,       // expressions
  set,         // target = expressions[0]
  set_block,   // target = body, through expressions[0] where there are filters
  if_else,     // branches
  for_loop,    // target in expressions[0] if expressions[1] (may be null): body, else otherwise
  break_loop,  //
  next_loop,   //
  macro,       // text(parameters): body
  call_block,  // call expressions[0] with (parameters): body as caller
  filter,      // expressions[0]: filters over body
  with,        // parameters: body
  block,       // text: body
  scope,       // body in a scope of its own
  refused,     // what needs a loader of templates; text says what
};

// Where an assignment goes: a name, a namespace's attribute, or a tuple of targets.
struct Target {
  std::size_t offset = 0;
  std::string name;
  std::string attribute;  // empty: the name itself
  std::vector<Target> items;
  bool is_tuple = false;
};

// A parameter of a macro, or a variable of `with`.
struct Parameter {
  std::string name;
  ExpressionPtr value;  // the default; null where there is none
  Target target;        // with's
};

struct Branch {
  ExpressionPtr condition;  // null: else
  Block body;
};

struct Statement {
  StatementKind kind = StatementKind::data;
  std::size_t offset = 0;
  std::string text;
  std::vector<ExpressionPtr> expressions;
  Target target;
  std::vector<Branch> branches;
  std::vector<Parameter> parameters;
  Block body;
  Block otherwise;
  bool recursive = false;
  // Of a macro or call block: which of the names that Jinja fills in its body reads.
  bool reads_caller = false;
  bool reads_kwargs = false;
  bool reads_varargs = false;
};

}  // namespace edgerunner::jinja
