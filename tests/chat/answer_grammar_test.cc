#include "chat/answer_grammar.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "constraint/accepts.h"
#include "support/expect_error.h"

namespace edgerunner {
namespace {

using Json = nlohmann::ordered_json;
using test::accepts;

Json tools() {
  return Json::parse(R"([
    {"type": "function", "function": {"name": "find", "parameters":
      {"properties": {"q": {"enum": ["a", "b"]}}, "required": ["q"]}}},
    {"type": "function", "function": {"name": "stop"}}])");
}

std::shared_ptr<const Grammar> grammar(const OutputFormat& format, const AnswerShape& shape) {
  return std::make_shared<const Grammar>(answer_grammar(format, shape));
}

// What the grammar takes as calls, the parser reads as calls.
void expect_calls(const OutputFormat& format, const AnswerShape& shape, const std::string& text,
                  std::size_t count) {
  EXPECT_TRUE(accepts(grammar(format, shape), text)) << text;
  OutputParser parser(format);
  const OutputDelta delta = parser.push(text);
  EXPECT_EQ(delta.content + parser.finish().content, "") << text;
  EXPECT_EQ(parser.tool_calls(), count) << text;
}

AnswerShape demanded() { return {.tools = tools(), .calls_only = true, .schema = nullptr}; }

constexpr const char* kHermesCall =
    "<tool_call>\n{\"name\": \"find\", \"arguments\": {\"q\": \"a\"}}\n</tool_call>";
constexpr OutputFormat kHermes = {.tool_calls = ToolCallFormat::hermes};

TEST(AnswerGrammar, HoldsHermesToCalls) {
  expect_calls(kHermes, demanded(), kHermesCall, 1);
  expect_calls(kHermes, demanded(), std::string(kHermesCall) + "\n" + kHermesCall, 2);
  expect_calls(kHermes, demanded(), R"(<tool_call>{"name":"stop","arguments":{}}</tool_call>)", 1);
  const auto only_calls = grammar(kHermes, demanded());
  for (const char* text :
       {"", "text", "<tool_call>", "a<tool_call>{\"name\":\"stop\",\"arguments\":{}}</tool_call>",
        "<tool_call>{\"name\":\"other\",\"arguments\":{}}</tool_call>",
        "<tool_call>{\"name\":\"find\",\"arguments\":{}}</tool_call>",
        "<tool_call>{\"name\":\"stop\",\"arguments\":{\"x\":1}}</tool_call>",
        "<tool_call>{\"name\":\"find\",\"arguments\":{\"q\":\"c\"}}</tool_call>"}) {
    EXPECT_FALSE(accepts(only_calls, text)) << text;
  }
}

TEST(AnswerGrammar, AllowsOneCallWhereSeveralMayNotCome) {
  AnswerShape shape = demanded();
  shape.several_calls = false;
  expect_calls(kHermes, shape, kHermesCall, 1);
  EXPECT_FALSE(accepts(grammar(kHermes, shape), std::string(kHermesCall) + kHermesCall));
  shape.calls_only = false;
  const auto text = grammar(kHermes, shape);
  EXPECT_TRUE(accepts(text, "no call"));
  EXPECT_TRUE(accepts(text, std::string("Well. ") + kHermesCall));
  EXPECT_FALSE(accepts(text, std::string(kHermesCall) + kHermesCall));
  EXPECT_FALSE(accepts(text, std::string(kHermesCall) + "more"));
}

TEST(AnswerGrammar, HoldsLlamaAndMistralToTheirCalls) {
  const OutputFormat llama = {.tool_calls = ToolCallFormat::llama3};
  const std::string call = R"({"name": "find", "parameters": {"q": "b"}})";
  expect_calls(llama, demanded(), call, 1);
  expect_calls(llama, demanded(), call + "; " + call, 2);
  OutputFormat mistral = {.tool_calls = ToolCallFormat::mistral};
  expect_calls(mistral, demanded(), R"([TOOL_CALLS] [{"name": "stop", "arguments": {}}])", 1);
  expect_calls(mistral, demanded(),
               R"([TOOL_CALLS][{"name":"stop","arguments":{}}, {"name":"stop","arguments":{}}])",
               2);
  mistral.args_mark = true;
  expect_calls(mistral, demanded(), R"([TOOL_CALLS]find[ARGS]{"q": "a"}[TOOL_CALLS]stop[ARGS]{})",
               2);
}

TEST(AnswerGrammar, BindsStrictToolsWithinFreeText) {
  AnswerShape shape = demanded();
  shape.calls_only = false;
  const std::string loose = "<tool_call>{\"name\":\"find\",\"arguments\":{\"x\":1}}</tool_call>";
  EXPECT_TRUE(accepts(grammar(kHermes, shape), "a <tool_cal" + loose + "b" + loose));
  shape.tools[0]["function"]["strict"] = true;
  EXPECT_FALSE(accepts(grammar(kHermes, shape), loose));
  EXPECT_TRUE(accepts(grammar(kHermes, shape), std::string("a") + kHermesCall + " b"));
  const OutputFormat llama = {.tool_calls = ToolCallFormat::llama3};
  const auto in_llama = grammar(llama, shape);
  EXPECT_TRUE(accepts(in_llama, "Hello {\"name\"}"));
  EXPECT_TRUE(accepts(in_llama, R"({"name": "find", "parameters": {"q": "b"}})"));
  EXPECT_FALSE(accepts(in_llama, R"({"name": "find", "parameters": {"q": "c"}})"));
  EXPECT_FALSE(accepts(in_llama, " {\"answer\": 42}"));
}

TEST(AnswerGrammar, TakesASchemaInPlaceOfText) {
  AnswerShape shape = demanded();
  shape.calls_only = false;
  shape.schema = Json{{"type", "integer"}};
  const auto either = grammar(kHermes, shape);
  EXPECT_TRUE(accepts(either, "42"));
  EXPECT_TRUE(accepts(either, kHermesCall));
  EXPECT_FALSE(accepts(either, "text"));
}

TEST(AnswerGrammar, LeavesReasoningFree) {
  const AnswerShape shape = {.tools = nullptr, .schema = Json{{"type", "integer"}}};
  OutputFormat format = {.reasoning = true};
  EXPECT_TRUE(accepts(grammar(format, shape), "42"));
  EXPECT_TRUE(accepts(grammar(format, shape), "<think>hm</think>\n\n42"));
  EXPECT_FALSE(accepts(grammar(format, shape), "hm</think>42"));
  format.starts_in_reasoning = true;
  EXPECT_TRUE(accepts(grammar(format, shape), "hm 7</think>42"));
  EXPECT_FALSE(accepts(grammar(format, shape), "42"));
}

TEST(AnswerGrammar, NamesTheToolThatCantBeEnforced) {
  AnswerShape shape = demanded();
  for (const Json& parameters :
       {Json{{"type", "object"}, {"not", Json::object()}}, Json{{"type", "string"}}}) {
    shape.tools[0]["function"]["parameters"] = parameters;
    test::expect_error(ErrorCode::invalid_argument, "parameters of \"find\"",
                       [&] { answer_grammar(kHermes, shape); });
  }
}

}  // namespace
}  // namespace edgerunner
