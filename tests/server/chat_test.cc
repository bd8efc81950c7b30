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

// Names the marks of the formats, so that they are looked for.
constexpr const char* kTemplate =
    "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}"
    "{% if tools %}T{{ tools|length }}{# <tool_call> <think> #}<tool_call>{% endif %}"
    "{% if false %}</think>{% endif %}>";
constexpr const char* kPrompt = "user:hi;>";

ScriptedModelOptions with_template() {
  ScriptedModelOptions options;
  options.chat_template = kTemplate;
  return options;
}

Json hello() { return {{"messages", {{{"role", "user"}, {"content", "hi"}}}}, {"temperature", 0}}; }

Json tools() {
  return Json::array({{{"type", "function"},
                       {"function", {{"name", "f"}, {"parameters", {{"type", "object"}}}}}}});
}

TEST(Chat, AnswersByTheTemplate) {
  TestServer server;
  server.load(say(kPrompt, "hello"), with_template());
  const HttpAnswer answer = post(server, "/v1/chat/completions", hello());
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json json = Json::parse(answer.body);
  EXPECT_EQ(json["choices"][0]["message"]["content"], "hello");
  EXPECT_EQ(json["choices"][0]["message"]["role"], "assistant");
  EXPECT_EQ(json["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(json["usage"]["prompt_tokens"], std::string(kPrompt).size());
}

TEST(Chat, StreamsWhatItAnswersWhole) {
  TestServer server;
  server.load(say(kPrompt, "a \xF0\x9F\x98\x80 b END"), with_template());
  Json body = hello();
  body["stop"] = "END";
  body["logprobs"] = true;
  body["top_logprobs"] = 2;
  const Json whole = Json::parse(post(server, "/v1/chat/completions", body).body)["choices"][0];
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  const std::vector<Json> parts = events(post(server, "/v1/chat/completions", body).body);
  std::string text;
  Json tokens = Json::array();
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    const Json& choice = parts[i]["choices"][0];
    text += choice["delta"].value("content", "");
    for (const Json& token : choice["logprobs"]["content"]) tokens.push_back(token);
  }
  EXPECT_EQ(parts.front()["choices"][0]["delta"]["role"], "assistant");
  EXPECT_EQ(text, whole["message"]["content"]);
  EXPECT_EQ(text, "a \xF0\x9F\x98\x80 b ");
  EXPECT_EQ(tokens, whole["logprobs"]["content"]);
  EXPECT_EQ(parts[parts.size() - 2]["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(parts.back()["usage"]["total_tokens"].get<int>(),
            parts.back()["usage"]["prompt_tokens"].get<int>() +
                parts.back()["usage"]["completion_tokens"].get<int>());
}

TEST(Chat, SeparatesCallsOfTools) {
  const std::string output =
      "Let me see.<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": 1}}</tool_call>";
  TestServer server;
  server.load(say("user:hi;T1<tool_call>>", output), with_template());
  Json body = hello();
  body["tools"] = tools();
  const Json whole = Json::parse(post(server, "/v1/chat/completions", body).body)["choices"][0];
  EXPECT_EQ(whole["finish_reason"], "tool_calls");
  EXPECT_EQ(whole["message"]["content"], "Let me see.");
  const Json& call = whole["message"]["tool_calls"][0];
  EXPECT_EQ(call["function"]["name"], "f");
  EXPECT_EQ(Json::parse(call["function"]["arguments"].get<std::string>()), Json({{"x", 1}}));
  EXPECT_FALSE(call["id"].get<std::string>().empty());

  body["stream"] = true;
  std::string arguments;
  std::string name;
  for (const Json& event : events(post(server, "/v1/chat/completions", body).body)) {
    const Json& delta = event["choices"][0]["delta"];
    if (!delta.contains("tool_calls")) continue;
    const Json& function = delta["tool_calls"][0]["function"];
    name += function.value("name", "");
    arguments += function.value("arguments", "");
  }
  EXPECT_EQ(name, "f");
  EXPECT_EQ(arguments, call["function"]["arguments"]);
}

TEST(Chat, LeavesToolsOutWhereNoneMayBeCalled) {
  TestServer server;
  server.load(say(kPrompt, "hello"), with_template());
  Json body = hello();
  body["tools"] = tools();
  body["tool_choice"] = "none";
  const Json json = Json::parse(post(server, "/v1/chat/completions", body).body);
  EXPECT_EQ(json["choices"][0]["message"]["content"], "hello");
}

TEST(Chat, NamesTheFieldThatIsWrong) {
  TestServer server;
  server.load(say(kPrompt, "hello"), with_template());
  const std::vector<std::pair<std::string, Json>> wrong = {
      {"messages", nullptr},
      {"messages", Json::array()},
      {"messages", {1}},
      {"messages", {{{"content", "no role"}}}},
      {"tools", {{{"type", "oven"}}}},
      {"tools", {{{"type", "function"}, {"function", Json::object()}}}},
      {"tools", "x"},
      {"max_tokens", 0},
      {"max_completion_tokens", "x"},
      {"top_logprobs", 2},
      {"logprobs", 1},
      {"response_format", {{"type", "yaml"}}},
      {"response_format", {{"type", "json_schema"}}},
      {"response_format",
       {{"type", "json_schema"},
        {"json_schema", {{"name", "n"}, {"schema", {{"not", {{"type", "object"}}}}}}}}},
  };
  for (const auto& [field, value] : wrong) {
    Json body = hello();
    body[field] = value;
    const HttpAnswer answer = post(server, "/v1/chat/completions", body);
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_EQ(Json::parse(answer.body)["error"]["param"], field) << body;
  }
}

TEST(Chat, RefusesAModelWithoutATemplate) {
  TestServer server;
  server.load(say(kPrompt, "hello"));
  const HttpAnswer answer = post(server, "/v1/chat/completions", hello());
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.body, HasSubstr("no chat template"));
}

TEST(Responses, GivesAMessage) {
  TestServer server;
  server.load(say(kPrompt, "hello"), with_template());
  const HttpAnswer answer = post(server, "/v1/responses", {{"input", "hi"}, {"temperature", 0}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json json = Json::parse(answer.body);
  EXPECT_EQ(json["status"], "completed");
  EXPECT_EQ(json["output"][0]["content"][0]["text"], "hello");
  EXPECT_EQ(json["usage"]["output_tokens"], 5);
}

TEST(Responses, StreamsNumberedEvents) {
  TestServer server;
  server.load(say(kPrompt, "hello"), with_template());
  const std::string body =
      post(server, "/v1/responses", {{"input", "hi"}, {"temperature", 0}, {"stream", true}}).body;
  std::string text;
  std::string types;
  int number = 0;
  for (std::size_t at = 0; (at = body.find("data: ", at)) != std::string::npos; ++at) {
    const Json event = Json::parse(body.substr(at + 6, body.find("\n\n", at) - at - 6));
    EXPECT_EQ(event["sequence_number"], number++);
    types += event["type"].get<std::string>() + " ";
    if (event["type"] == "response.output_text.delta") text += event["delta"];
  }
  EXPECT_EQ(text, "hello");
  EXPECT_THAT(types, testing::StartsWith("response.created response.in_progress "
                                         "response.output_item.added response.content_part.added"));
  EXPECT_THAT(types, testing::EndsWith("response.output_item.done response.completed "));
}

TEST(Responses, TakesCallsAndTheirOutputs) {
  TestServer server;
  server.load(say("user:hi;assistant:;tool:warm;>", "It is warm."), with_template());
  const Json input = {
      {{"role", "user"}, {"content", {{{"type", "input_text"}, {"text", "hi"}}}}},
      {{"type", "function_call"}, {"call_id", "1"}, {"name", "f"}, {"arguments", "{}"}},
      {{"type", "function_call_output"}, {"call_id", "1"}, {"output", "warm"}}};
  const HttpAnswer answer = post(server, "/v1/responses", {{"input", input}, {"temperature", 0}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(Json::parse(answer.body)["output"][0]["content"][0]["text"], "It is warm.");
}

TEST(Responses, NamesTheFieldThatIsWrong) {
  TestServer server;
  server.load(say(kPrompt, "hello"), with_template());
  for (const auto& [field, value] :
       std::vector<std::pair<std::string, Json>>{{"input", nullptr},
                                                 {"input", Json::array()},
                                                 {"input", {{{"type", "oven"}}}},
                                                 {"previous_response_id", "resp_1"},
                                                 {"max_output_tokens", 0}}) {
    Json body = {{"input", "hi"}};
    body[field] = value;
    const HttpAnswer answer = post(server, "/v1/responses", body);
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_EQ(Json::parse(answer.body)["error"]["param"], field) << body;
  }
}

TEST(Page, IsServedWithAPolicyThatAllowsNoOtherScript) {
  TestServer server({}, {}, "secret");
  HttpClient client(server.port());
  client.get("/");
  const HttpAnswer page = client.receive();
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.headers, HasSubstr("default-src 'none'; script-src 'self'"));
  EXPECT_THAT(page.body, HasSubstr("app.js"));
  EXPECT_EQ(page.body.find("http"), std::string::npos) << "nothing is loaded from elsewhere";
  client.get("/app.js");
  EXPECT_EQ(client.receive().status, 200);
}

}  // namespace
}  // namespace edgerunner::test
