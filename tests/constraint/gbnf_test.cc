#include "constraint/gbnf.h"

#include <gtest/gtest.h>

#include <string>

#include "accepts.h"
#include "support/expect_error.h"

namespace edgerunner {
namespace {

std::shared_ptr<const Grammar> grammar(std::string_view text) {
  return std::make_shared<Grammar>(parse_gbnf(text));
}

void refuses(const std::string& text, const std::string& part) {
  test::expect_error(ErrorCode::invalid_argument, part, [&] { parse_gbnf(text); });
}

TEST(Gbnf, TakesLiteralsClassesGroupsAndAlternatives) {
  const auto g = grammar("root ::= \"a\\n\" [x-z]+ (\"1\" | \"2\")? # comment\n");
  EXPECT_TRUE(test::accepts(g, "a\nx"));
  EXPECT_TRUE(test::accepts(g, "a\nxyz2"));
  EXPECT_FALSE(test::accepts(g, "a\n"));
  EXPECT_FALSE(test::accepts(g, "a\nx12"));
}

TEST(Gbnf, CountsRepetitions) {
  const auto g = grammar("root ::= \"a\"{2,3} \"b\"{2} \"c\"{1,}");
  EXPECT_TRUE(test::accepts(g, "aabbc"));
  EXPECT_TRUE(test::accepts(g, "aaabbccc"));
  EXPECT_FALSE(test::accepts(g, "abbc"));
  EXPECT_FALSE(test::accepts(g, "aaaabbc"));
}

TEST(Gbnf, TakesCharactersAsUtf8) {
  const auto g = grammar("root ::= [^a-y\\n] [\xC3\xA4-\xE4\xB8\xAD] .");
  EXPECT_TRUE(test::accepts(g, "z\xC3\xA4\xF0\x9F\x98\x80"));
  EXPECT_TRUE(test::accepts(g, "\xF0\x9F\x98\x80\xE4\xB8\xAD."));
  EXPECT_FALSE(test::accepts(g, "a\xC3\xA4."));
  EXPECT_FALSE(test::accepts(g, "z\xC3\xA3."));
  EXPECT_FALSE(test::accepts(g, "z\xC3\xA4\xED\xA0\x80"));  // half a character
}

TEST(Gbnf, RulesMayCallThemselves) {
  const auto g = grammar("root ::= \"(\" root \")\" | list\nlist ::= \"x\" (\",\" list)?");
  EXPECT_TRUE(test::accepts(g, "((x,x,x))"));
  EXPECT_FALSE(test::accepts(g, "((x)"));
  EXPECT_FALSE(test::accepts(g, "(x))"));
}

TEST(Gbnf, AlternativesMayStandOnLinesOfTheirOwn) {
  const auto g = grammar("root ::= \"a\"\n  | \"b\"\n  | other\nother ::=\n  \"c\"\n");
  EXPECT_TRUE(test::accepts(g, "b"));
  EXPECT_TRUE(test::accepts(g, "c"));
}

TEST(Gbnf, RepeatsWhatMayBeEmpty) {
  const auto g = grammar("root ::= (\"a\"? \"b\"*)* \"c\"");
  EXPECT_TRUE(test::accepts(g, "abbabc"));
  EXPECT_TRUE(test::accepts(g, "c"));
}

TEST(Gbnf, NamesTheLineOfAnError) {
  refuses("root ::= \"a\"\nb ::= (\"c\"", "line 2");
  refuses("root ::= nosuch", "no rule 'nosuch'");
  refuses("a ::= \"b\"", "root");
  refuses("root ::= \"a", "inside quotes");
  refuses("root ::= [z-a]", "upside down");
  refuses("root ::= \"a\"{3,2}", "upper limit");
  refuses("root ::= \"a\"{99999999}", "repetition");
}

TEST(Gbnf, RefusesLeftRecursion) {
  refuses("root ::= root \"a\" | \"b\"", "left recursion");
  refuses("root ::= a \"x\" | \"y\"\na ::= \"\"? root", "left recursion");
  refuses("root ::= \"a\" root", "no text that ends");
}

TEST(Gbnf, HostileGrammarsEndWithAnError) {
  refuses("root ::= " + std::string(100000, '('), "deeply");
  refuses("root ::= ((((\"a\"{9999}){9999}){9999}){9999})", "nodes");
  parse_gbnf("root ::= ((((\"\"{9999}){9999}){9999}){9999}) \"a\"");
}

TEST(Gbnf, NestsToALimitAndNoDeeper) {
  const auto g = grammar("root ::= \"(\" root \")\" | \"x\"");
  EXPECT_TRUE(test::accepts(g, std::string(200, '(') + "x" + std::string(200, ')')));
  EXPECT_FALSE(test::accepts(g, std::string(5000, '(') + "x" + std::string(5000, ')')));
}

}  // namespace
}  // namespace edgerunner
