#include "chat/jinja/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "chat/jinja/expression_parser.h"
#include "chat/jinja/find_names.h"
#include "chat/jinja/token_cursor.h"

namespace edgerunner::jinja {
namespace {

using Words = std::initializer_list<std::string_view>;

class Parser {
 public:
  explicit Parser(const Source& source)
      : source_(source), cursor_(source, tokenize(source)), expressions_(cursor_) {}

  Block run() { return body({}); }

 private:
  static StatementPtr make(StatementKind kind, std::size_t offset) {
    auto made = std::make_unique<Statement>();
    made->kind = kind;
    made->offset = offset;
    return made;
  }

  // Statements up to a tag that begins with one of the words, which is left in place behind its
  // "{%"; without words, up to the end of the template.
  Block body(Words ends) {
    const TokenCursor::Level level(cursor_);
    Block statements;
    while (!cursor_.is(TokenType::end)) {
      const Token token = cursor_.take();
      if (token.type == TokenType::data) {
        statements.push_back(make(StatementKind::data, token.offset));
        statements.back()->text = token.text;
      } else if (token.type == TokenType::variable_begin) {
        StatementPtr print = make(StatementKind::print, token.offset);
        print->expressions.push_back(expressions_.tuple(true));
        cursor_.expect(TokenType::variable_end, "'}}'");
        statements.push_back(std::move(print));
      } else {
        if (is_one_of(ends)) return statements;
        statements.push_back(statement());
        cursor_.expect(TokenType::block_end, "'%}'");
      }
    }
    if (ends.size() > 0) cursor_.fail_unexpected(fmt::format("'{{% {} %}}'", *(ends.end() - 1)));
    return statements;
  }

  bool is_one_of(Words words) const {
    return std::any_of(words.begin(), words.end(),
                       [this](std::string_view word) { return cursor_.is_name(word); });
  }

  // The rest of an opening tag, then statements up to a tag of the words.
  Block block(Words ends) {
    cursor_.skip_symbol(":");
    cursor_.expect(TokenType::block_end, "'%}'");
    return body(ends);
  }

  // The same in a scope of its own, up to "{% end".
  Block inner_block(std::string_view end) {
    const bool outer = std::exchange(expressions_.lenient, false);
    const bool outer_loop = std::exchange(in_loop_, false);
    Block statements = block({end});
    cursor_.expect_name(end);
    expressions_.lenient = outer;
    in_loop_ = outer_loop;
    return statements;
  }

  StatementPtr statement() {
    const std::size_t offset = cursor_.current().offset;
    const std::string tag = cursor_.take_name("the name of a tag");
    if (tag == "if") return if_else(offset);
    if (tag == "for") return for_loop(offset);
    if (tag == "set") return set(offset);
    if (tag == "macro") return macro(offset);
    if (tag == "call") return call_block(offset);
    if (tag == "filter") return filter(offset);
    if (tag == "with") return with(offset);
    if (tag == "print") return print(offset);
    if (tag == "block") return named_block(offset);
    if (tag == "break" || tag == "continue") return leave(tag, offset);
    if (tag == "generation") return generation(offset);
    if (tag == "autoescape") return autoescape(offset);
    if (tag == "include" || tag == "import" || tag == "from" || tag == "extends") {
      return refuse(tag, offset);
    }
    cursor_.fail(offset, fmt::format("'{}' is no tag that can stand here", tag));
  }

  StatementPtr if_else(std::size_t offset) {
    StatementPtr made = make(StatementKind::if_else, offset);
    const bool outer = std::exchange(expressions_.lenient, true);
    while (true) {
      Branch branch;
      branch.condition = expressions_.tuple(false);
      branch.body = block({"elif", "else", "endif"});
      made->branches.push_back(std::move(branch));
      if (cursor_.skip_name("elif")) continue;
      if (cursor_.skip_name("else")) {
        made->branches.push_back({.condition = nullptr, .body = block({"endif"})});
      }
      cursor_.expect_name("endif");
      break;
    }
    expressions_.lenient = outer;
    return made;
  }

  StatementPtr for_loop(std::size_t offset) {
    StatementPtr made = make(StatementKind::for_loop, offset);
    made->target = expressions_.target(false, "in");
    refuse_loop_target(made->target);
    cursor_.expect_name("in");
    made->expressions.push_back(expressions_.tuple(false, false, "recursive"));
    made->expressions.push_back(cursor_.skip_name("if") ? expressions_.expression() : nullptr);
    made->recursive = cursor_.skip_name("recursive");
    const bool outer = std::exchange(expressions_.lenient, false);
    const bool outer_loop = std::exchange(in_loop_, true);
    made->body = block({"else", "endfor"});
    in_loop_ = outer_loop;
    if (cursor_.skip_name("else")) made->otherwise = block({"endfor"});
    cursor_.expect_name("endfor");
    expressions_.lenient = outer;
    return made;
  }

  void refuse_loop_target(const Target& target) const {
    if (target.name == "loop") cursor_.fail(target.offset, "'loop' can't be assigned to");
    for (const Target& item : target.items) refuse_loop_target(item);
  }

  StatementPtr leave(std::string_view tag, std::size_t offset) const {
    if (!in_loop_) cursor_.fail(offset, fmt::format("'{}' stands outside a loop", tag));
    return make(tag == "break" ? StatementKind::break_loop : StatementKind::next_loop, offset);
  }

  StatementPtr set(std::size_t offset) {
    StatementPtr made = make(StatementKind::set, offset);
    made->target = expressions_.target(true);
    if (cursor_.skip_symbol("=")) {
      made->expressions.push_back(expressions_.tuple(true));
      return made;
    }
    made->kind = StatementKind::set_block;
    made->expressions.push_back(expressions_.filters(nullptr));
    made->body = inner_block("endset");
    return made;
  }

  std::vector<Parameter> signature() {
    std::vector<Parameter> parameters;
    cursor_.expect_symbol("(");
    while (!cursor_.is_symbol(")")) {
      if (!parameters.empty()) cursor_.expect_symbol(",");
      Parameter parameter;
      const std::size_t offset = cursor_.current().offset;
      parameter.name = cursor_.take_name("the name of a parameter");
      if (cursor_.skip_symbol("=")) {
        parameter.value = expressions_.expression();
      } else if (!parameters.empty() && parameters.back().value) {
        cursor_.fail(offset, "a parameter without a default follows one with a default");
      }
      parameters.push_back(std::move(parameter));
    }
    cursor_.expect_symbol(")");
    return parameters;
  }

  static void note_special_names(Statement& made) {
    made.reads_caller = reads_name(made.body, "caller");
    made.reads_kwargs = reads_name(made.body, "kwargs");
    made.reads_varargs = reads_name(made.body, "varargs");
  }

  StatementPtr macro(std::size_t offset) {
    StatementPtr made = make(StatementKind::macro, offset);
    made->text = cursor_.take_name("the name of the macro");
    made->parameters = signature();
    made->body = inner_block("endmacro");
    note_special_names(*made);
    return made;
  }

  StatementPtr call_block(std::size_t offset) {
    StatementPtr made = make(StatementKind::call_block, offset);
    if (cursor_.is_symbol("(")) made->parameters = signature();
    made->expressions.push_back(expressions_.expression());
    if (made->expressions.front()->kind != ExpressionKind::call) {
      cursor_.fail(made->expressions.front()->offset, "a call block needs a call");
    }
    made->body = inner_block("endcall");
    note_special_names(*made);
    return made;
  }

  StatementPtr filter(std::size_t offset) {
    StatementPtr made = make(StatementKind::filter, offset);
    made->expressions.push_back(expressions_.filters(expressions_.filter(nullptr)));
    made->body = inner_block("endfilter");
    return made;
  }

  StatementPtr with(std::size_t offset) {
    StatementPtr made = make(StatementKind::with, offset);
    while (!cursor_.is(TokenType::block_end)) {
      if (!made->parameters.empty()) cursor_.expect_symbol(",");
      Parameter parameter;
      parameter.target = expressions_.target(false);
      cursor_.expect_symbol("=");
      parameter.value = expressions_.expression();
      made->parameters.push_back(std::move(parameter));
    }
    const bool in_loop = in_loop_;
    made->body = inner_scope("endwith", in_loop);
    return made;
  }

  // A scope that a loop's `break` may leave.
  Block inner_scope(std::string_view end, bool in_loop) {
    const bool outer = std::exchange(expressions_.lenient, false);
    in_loop_ = in_loop;
    Block statements = block({end});
    cursor_.expect_name(end);
    expressions_.lenient = outer;
    return statements;
  }

  StatementPtr print(std::size_t offset) {
    StatementPtr made = make(StatementKind::print, offset);
    while (!cursor_.is(TokenType::block_end)) {
      if (!made->expressions.empty()) cursor_.expect_symbol(",");
      made->expressions.push_back(expressions_.expression());
    }
    return made;
  }

  StatementPtr named_block(std::size_t offset) {
    StatementPtr made = make(StatementKind::block, offset);
    made->text = cursor_.take_name("the name of the block");
    while (cursor_.skip_name("scoped") || cursor_.skip_name("required")) {
      throw source_.error(ErrorCode::unsupported, offset, "blocks that are 'scoped' or 'required'");
    }
    made->body = inner_block("endblock");
    cursor_.skip_name(made->text);
    return made;
  }

  StatementPtr generation(std::size_t offset) {
    StatementPtr made = make(StatementKind::scope, offset);
    made->body = inner_block("endgeneration");
    return made;
  }

  StatementPtr autoescape(std::size_t offset) {
    StatementPtr made = make(StatementKind::scope, offset);
    const ExpressionPtr value = expressions_.expression();
    if (value->kind != ExpressionKind::boolean || value->boolean) {
      throw source_.error(ErrorCode::unsupported, offset, "escaping for HTML (autoescape)");
    }
    made->body = inner_scope("endautoescape", in_loop_);
    return made;
  }

  // Parsed far enough to go on behind it: reaching it is the error.
  StatementPtr refuse(const std::string& tag, std::size_t offset) {
    StatementPtr made = make(StatementKind::refused, offset);
    made->text = fmt::format("'{}' needs other templates, and a model file has one", tag);
    while (!cursor_.is(TokenType::block_end) && !cursor_.is(TokenType::end)) cursor_.take();
    return made;
  }

  const Source& source_;
  TokenCursor cursor_;
  ExpressionParser expressions_;
  bool in_loop_ = false;
};

}  // namespace

Block parse(const Source& source) { return Parser(source).run(); }

}  // namespace edgerunner::jinja
