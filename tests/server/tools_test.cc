#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "server/answers.h"
#include "server/json.h"
#include "server/test_server.h"

namespace edgerunner::test {
namespace {

using server::Json;
using testing::HasSubstr;

// Says nothing of tools, but that it writes them as Hermes does.
constexpr const char* kTemplate =
    "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}{# <tool_call> #}>";

ScriptedModelOptions with_template() {
  ScriptedModelOptions options;
  options.chat_template = kTemplate;
  return options;
}

ScriptedModelOptions with_reasoning() {
  ScriptedModelOptions options;
  options.chat_template = std::string(kTemplate) + "{# </think> #}";
  return options;
}

// What a model that doesn't care would say: the same letter, on and on.
ScriptedExecutor::Script stubborn() {
  return [](std::span<const TokenId>) { return 'z'; };
}

Json hello() {
  return {{"messages", {{{"role", "user"}, {"content", "hi"}}}},
          {"temperature", 0},
          {"max_tokens", 400},
          {"parallel_tool_calls", false}};
}

Json tools() {
  return Json::parse(R"([
    {"type": "function", "function": {"name": "set", "parameters":
      {"type": "object", "properties": {"x": {"enum": [1, 2]}, "y": {"type": "boolean"}},
       "required": ["x", "y"], "additionalProperties": false}}},
    {"type": "function", "function": {"name": "stop"}}])");
}

Json first_choice(const HttpAnswer& answer) {
  EXPECT_EQ(answer.status, 200) << answer.body;
  return Json::parse(answer.body)["choices"][0];
}

void expect_call_of_set(const Json& function) {
  EXPECT_EQ(function["name"], "set");
  const Json arguments = Json::parse(function["arguments"].get<std::string>());
  EXPECT_TRUE(arguments["x"] == 1 || arguments["x"] == 2) << arguments;
  EXPECT_TRUE(arguments["y"].is_boolean()) << arguments;
  EXPECT_EQ(arguments.size(), 2U);
}

TEST(Tools, ADemandedCallComesWhateverTheModelWouldSay) {
  TestServer server;
  server.load(stubborn(), with_template());
  Json body = hello();
  body["tools"] = tools();
  body["tool_choice"] = "required";
  const Json choice = first_choice(post(server, "/v1/chat/completions", body));
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_TRUE(choice["message"]["content"].is_null()) << choice;
  ASSERT_EQ(choice["message"]["tool_calls"].size(), 1U);
}

TEST(Tools, ANamedFunctionIsCalledWithArgumentsOfItsSchema) {
  TestServer server;
  server.load(stubborn(), with_template());
  Json body = hello();
  body["tools"] = tools();
  body["tool_choice"] = {{"type", "function"}, {"function", {{"name", "set"}}}};
  const Json choice = first_choice(post(server, "/v1/chat/completions", body));
  expect_call_of_set(choice["message"]["tool_calls"][0]["function"]);

  body["stream"] = true;
  Json function = {{"name", ""}, {"arguments", ""}};
  for (const Json& event : events(post(server, "/v1/chat/completions", body).body)) {
    const Json& delta = event["choices"][0]["delta"];
    if (!delta.contains("tool_calls")) continue;
    for (const char* part : {"name", "arguments"}) {
      function[part] = function[part].get<std::string>() +
                       delta["tool_calls"][0]["function"].value(part, std::string());
    }
  }
  EXPECT_EQ(function, choice["message"]["tool_calls"][0]["function"]);
}

TEST(Tools, ADemandedCallIsHermesWhereTheTemplateKnowsNone) {
  TestServer server;
  ScriptedModelOptions options;
  options.chat_template = "{{ messages[0].content }}";
  server.load(stubborn(), options);
  Json body = hello();
  body["tools"] = tools();
  body["tool_choice"] = "required";
  EXPECT_EQ(first_choice(post(server, "/v1/chat/completions", body))["finish_reason"],
            "tool_calls");
}

TEST(Tools, ResponsesNameAFunctionInTheirOwnForm) {
  TestServer server;
  server.load(stubborn(), with_template());
  Json flat = tools()[0]["function"];
  flat["type"] = "function";
  const Json body = {{"input", "hi"},
                     {"temperature", 0},
                     {"max_output_tokens", 400},
                     {"tools", Json::array({flat})},
                     {"tool_choice", {{"type", "function"}, {"name", "set"}}}};
  const HttpAnswer answer = post(server, "/v1/responses", body);
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json item = Json::parse(answer.body)["output"][0];
  EXPECT_EQ(item["type"], "function_call");
  expect_call_of_set(item);
}

TEST(Tools, OneCallEndsTheAnswerWhereCallsAreNotParallel) {
  const std::string call = "<tool_call>{\"name\": \"stop\", \"arguments\": {}}</tool_call>";
  TestServer server;
  server.load(say("user:hi;>", "Well. " + call + call), with_template());
  Json body = hello();
  body["tools"] = tools();
  EXPECT_EQ(
      first_choice(post(server, "/v1/chat/completions", body))["message"]["tool_calls"].size(), 1U);
  body["parallel_tool_calls"] = true;
  EXPECT_EQ(
      first_choice(post(server, "/v1/chat/completions", body))["message"]["tool_calls"].size(), 2U);
}

TEST(Tools, AChoiceThatCantBeKeptIsRefused) {
  TestServer server;
  server.load(stubborn(), with_template());
  Json unenforceable = tools();
  unenforceable[0]["function"]["parameters"]["not"] = Json::object();
  const std::vector<std::pair<std::string, Json>> wrong = {
      {"tool_choice", {{"tool_choice", "required"}}},
      {"tool_choice", {{"tool_choice", "sometimes"}, {"tools", tools()}}},
      {"tool_choice", {{"tool_choice", Json::object()}, {"tools", tools()}}},
      {"tool_choice",
       {{"tool_choice", {{"type", "function"}, {"function", {{"name", "other"}}}}},
        {"tools", tools()}}},
      {"tools", {{"tool_choice", "required"}, {"tools", unenforceable}}},
      {"parallel_tool_calls", {{"parallel_tool_calls", "x"}, {"tools", tools()}}},
      {"functions", {{"functions", tools()}}},
  };
  for (const auto& [field, members] : wrong) {
    Json body = hello();
    body.update(members);
    const HttpAnswer answer = post(server, "/v1/chat/completions", body);
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_EQ(Json::parse(answer.body)["error"]["param"], field) << answer.body;
  }
}

TEST(StructuredAnswers, ComeBehindReasoning) {
  TestServer server;
  server.load(say("user:hi;>", "<think>hm {</think>\n\n42, I think"), with_reasoning());
  Json body = hello();
  body["response_format"] = {
      {"type", "json_schema"},
      {"json_schema", {{"name", "n"}, {"schema", {{"type", "integer"}, {"maximum", 99}}}}}};
  const Json answer = Json::parse(post(server, "/v1/chat/completions", body).body);
  const Json& message = answer["choices"][0]["message"];
  EXPECT_EQ(message["reasoning_content"], "hm {");
  EXPECT_EQ(message["content"], "42");
  EXPECT_EQ(answer["usage"]["completion_tokens_details"]["reasoning_tokens"], 19);
}

TEST(StructuredAnswers, AreAskedForInResponsesToo) {
  TestServer server;
  server.load(stubborn(), with_template());
  Json body = {{"input", "hi"}, {"temperature", 0}, {"max_output_tokens", 100}};
  body["text"]["format"] = {
      {"type", "json_schema"}, {"name", "n"}, {"schema", {{"enum", {"yes", "no"}}}}};
  const Json answer = Json::parse(post(server, "/v1/responses", body).body);
  const std::string text = answer["output"][0]["content"][0]["text"].get<std::string>();
  EXPECT_TRUE(text == "\"yes\"" || text == "\"no\"") << text;
  EXPECT_EQ(answer["text"], body["text"]);
  body["text"]["format"] = {{"type", "yaml"}};
  const HttpAnswer refused = post(server, "/v1/responses", body);
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(Json::parse(refused.body)["error"]["param"], "text.format");
}

TEST(Responses, CountTheTokensOfReasoning) {
  TestServer server;
  server.load(say("user:hi;>", "<think>hm</think>yes"), with_reasoning());
  const Json answer =
      Json::parse(post(server, "/v1/responses", {{"input", "hi"}, {"temperature", 0}}).body);
  EXPECT_EQ(answer["usage"]["output_tokens_details"]["reasoning_tokens"], 17);
  EXPECT_EQ(answer["usage"]["output_tokens"], 20);
}

TEST(Messages, OfTheDeveloperAreOfTheSystem) {
  TestServer server;
  server.load(say("system:a;user:hi;>", "hello"), with_template());
  Json body = hello();
  body["messages"] = {{{"role", "developer"}, {"content", "a"}},
                      {{"role", "user"}, {"content", "hi"}}};
  EXPECT_EQ(first_choice(post(server, "/v1/chat/completions", body))["message"]["content"],
            "hello");
}

TEST(Messages, WithPartsThatAreNoTextAreRefused) {
  TestServer server;
  server.load(stubborn(), with_template());
  Json body = hello();
  body["messages"][0]["content"] = {
      {{"type", "image_url"}, {"image_url", {{"url", "data:image/png;base64,"}}}}};
  const HttpAnswer answer = post(server, "/v1/chat/completions", body);
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.body, HasSubstr("no text in messages[0]"));
}

}  // namespace
}  // namespace edgerunner::test
