#include "constraint/constraint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "constraint/gbnf.h"
#include "constraint/json_schema.h"
#include "support/expect_error.h"
#include "support/scripted_tokenizer.h"

namespace edgerunner {
namespace {

using test::ScriptedTokenizer;
using ::testing::UnorderedElementsAre;

constexpr TokenId kFirst = ScriptedTokenizer::kFirstPiece;

Constraint constrain(const ScriptedTokenizer& tokenizer, std::string_view gbnf) {
  return {std::make_shared<Grammar>(parse_gbnf(gbnf)), std::make_shared<TokenTrie>(tokenizer)};
}

std::vector<TokenId> allowed(Constraint& constraint, std::size_t vocabulary) {
  std::vector<TokenId> tokens;
  const auto mask = constraint.mask();
  for (TokenId token = 0; static_cast<std::size_t>(token) < vocabulary; ++token) {
    if (Constraint::allows(mask, token)) tokens.push_back(token);
  }
  return tokens;
}

// A vocabulary whose second piece is a control token.
class ControlTokenizer : public ScriptedTokenizer {
 public:
  ControlTokenizer() : ScriptedTokenizer({"<a", "<a>"}) {}
  bool is_control(TokenId token) const override { return token == kEnd || token == kFirst + 1; }
  std::string token_bytes(TokenId token, bool special) const override {
    if (token == kFirst + 1 && !special) return "";
    return ScriptedTokenizer::token_bytes(token, special);
  }
};

TEST(Constraint, CountsVisibleControlTokensAsTheirText) {
  const ControlTokenizer tokenizer;
  const auto grammar = std::make_shared<Grammar>(parse_gbnf("root ::= \"<a>\""));
  Constraint without(grammar, std::make_shared<TokenTrie>(tokenizer));
  EXPECT_THAT(allowed(without, tokenizer.size()), UnorderedElementsAre('<', kFirst));
  const std::vector<TokenId> visible = {kFirst + 1};
  Constraint with(grammar, std::make_shared<TokenTrie>(tokenizer, visible));
  EXPECT_THAT(allowed(with, tokenizer.size()), UnorderedElementsAre('<', kFirst, kFirst + 1));
  with.accept(kFirst + 1);
  EXPECT_TRUE(with.finished());
}

TEST(Constraint, AllowsTokensThatGoOn) {
  const ScriptedTokenizer tokenizer({"ab", "abc", "b\"", "x"});
  Constraint constraint = constrain(tokenizer, "root ::= \"ab\" [cd]");
  EXPECT_THAT(allowed(constraint, tokenizer.size()), UnorderedElementsAre('a', kFirst, kFirst + 1));
  constraint.accept(kFirst);
  EXPECT_THAT(allowed(constraint, tokenizer.size()), UnorderedElementsAre('c', 'd'));
  EXPECT_FALSE(constraint.finished());
  constraint.accept('d');
  EXPECT_TRUE(constraint.finished());
  EXPECT_THAT(allowed(constraint, tokenizer.size()), UnorderedElementsAre(ScriptedTokenizer::kEnd));
}

TEST(Constraint, AllowsTheEndWhereTheTextMayEnd) {
  const ScriptedTokenizer tokenizer;
  Constraint constraint = constrain(tokenizer, "root ::= \"a\"+");
  EXPECT_THAT(allowed(constraint, tokenizer.size()), UnorderedElementsAre('a'));
  constraint.accept('a');
  EXPECT_FALSE(constraint.finished());
  EXPECT_THAT(allowed(constraint, tokenizer.size()),
              UnorderedElementsAre('a', ScriptedTokenizer::kEnd));
}

TEST(Constraint, RefusesATokenThatTheMaskDoesNotAllow) {
  const ScriptedTokenizer tokenizer;
  Constraint constraint = constrain(tokenizer, "root ::= \"a\"");
  test::expect_error(ErrorCode::invalid_argument, "does not allow",
                     [&] { constraint.accept('b'); });
}

// A vocabulary of bytes, and whatever is allowed: what ends is JSON of the shape.
TEST(Constraint, RandomAllowedTokensEndAsJson) {
  const ScriptedTokenizer tokenizer({"\", \"", "{\"", "\":", "]}", "  ", "\\u", "1e", "-0", "[["});
  const auto trie = std::make_shared<TokenTrie>(tokenizer);
  const auto grammar = std::make_shared<Grammar>(any_json_object());
  std::mt19937 random(7);
  int finished = 0;
  for (int round = 0; round < 100; ++round) {
    Constraint constraint(grammar, trie);
    std::string text;
    for (int i = 0; i < 400; ++i) {
      std::vector<TokenId> tokens = allowed(constraint, tokenizer.size());
      ASSERT_FALSE(tokens.empty());
      TokenId token = tokens[random() % tokens.size()];
      for (const char close : {'"', '}', ']'}) {  // past some length, to an end
        if (i > 60 && Constraint::allows(constraint.mask(), close)) token = close;
      }
      if (tokens.front() == ScriptedTokenizer::kEnd) {
        ++finished;
        ASSERT_TRUE(nlohmann::json::parse(text, nullptr, false).is_object()) << text;
        break;
      }
      constraint.accept(token);
      text += tokenizer.token_bytes(token, false);
    }
  }
  EXPECT_GT(finished, 50);
}

TEST(Constraint, ForgetsStatesAndGoesOn) {
  const ScriptedTokenizer tokenizer;
  Constraint constraint = constrain(tokenizer, "root ::= \"(\" root \")\" [a-z]{0,20000} | \"x\"");
  std::string text = std::string(50, '(') + "x)";
  for (int i = 0; i < 20000; ++i) text += static_cast<char>('a' + i % 26);
  for (int i = 0; i < 49; ++i) text += ")z";
  for (const char c : text) {
    ASSERT_TRUE(Constraint::allows(constraint.mask(), c));
    constraint.accept(c);
  }
  EXPECT_TRUE(Constraint::allows(constraint.mask(), ScriptedTokenizer::kEnd));
}

}  // namespace
}  // namespace edgerunner
