#include "edgerunner/chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "edgerunner/error.h"
#include "support/expect_error.h"
#include "support/scripted_model.h"

namespace edgerunner {
namespace {

using test::say;
using test::ScriptedModel;
using test::ScriptedModelOptions;

// The marks in the comment tell what the model writes; the prompt is the first message.
constexpr char kTemplate[] = "{# <think> <tool_call> #}{{ messages[0].content }}";
constexpr char kHi[] = R"([{"role": "user", "content": "Hi"}])";
constexpr char kTools[] = R"([{"type": "function", "function": {"name": "f"}}])";

ScriptedModel saying(std::string_view text, std::string chat_template = kTemplate) {
  return ScriptedModel(say("Hi", text),
                       ScriptedModelOptions{.chat_template = std::move(chat_template)});
}

struct Answer {
  std::string content;
  std::string reasoning;
};

Answer read(ChatReply& reply) {
  Answer answer;
  while (const auto piece = reply.next()) {
    EXPECT_FALSE(piece->text.empty());
    (piece->reasoning ? answer.reasoning : answer.content) += piece->text;
  }
  EXPECT_FALSE(reply.next());
  return answer;
}

TEST(Chat, AnswersWhatTheTemplateMakesOfTheMessages) {
  ScriptedModel script = saying("yes");
  const Chat chat(script.model);
  EXPECT_EQ(chat.render(kHi), "Hi");
  ChatReply reply = chat.reply(kHi);
  EXPECT_EQ(read(reply).content, "yes");
  EXPECT_EQ(reply.summary().prompt_tokens, 2U);
  EXPECT_EQ(reply.summary().finish_reason, FinishReason::stop);
}

TEST(Chat, DividesAnAnswerIntoReasoningContentAndCalls) {
  ScriptedModel script =
      saying(R"(<think>hm</think>yes<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>)");
  const Chat chat(script.model);
  ChatReply reply = chat.reply(kHi, {}, {.tools = kTools});
  const Answer answer = read(reply);
  EXPECT_EQ(answer.reasoning, "hm");
  EXPECT_EQ(answer.content, "yes");
  ASSERT_EQ(reply.tool_calls().size(), 1U);
  EXPECT_EQ(reply.tool_calls()[0].name, "f");
  EXPECT_EQ(reply.tool_calls()[0].arguments, R"({"a": 1})");
}

TEST(Chat, LooksForNoCallsWithoutTools) {
  ScriptedModel script = saying("<tool_call>{}</tool_call>");
  const Chat chat(script.model);
  ChatReply reply = chat.reply(kHi);
  EXPECT_EQ(read(reply).content, "<tool_call>{}</tool_call>");
  EXPECT_TRUE(reply.tool_calls().empty());
}

TEST(Chat, WaitsForAPieceOfTheAnswerAndNotForOneOfACall) {
  ScriptedModel script = saying(R"(<tool_call>{"name": "f", "arguments": {}}</tool_call>)");
  const Chat chat(script.model);
  ChatReply reply = chat.reply(kHi, {}, {.tools = kTools});
  EXPECT_TRUE(reply.wait_for(std::chrono::minutes(1)));
  EXPECT_EQ(reply.tool_calls().size(), 1U);  // the end is there: all was read on the way
  EXPECT_FALSE(reply.next());
}

TEST(Chat, GivesVariablesToTheTemplate) {
  ScriptedModel script = saying("yes", "{{ messages[0].content if polite else 'no' }}");
  const Chat chat(script.model);
  EXPECT_EQ(chat.render(kHi, {.variables = R"({"polite": true})"}), "Hi");
  EXPECT_EQ(chat.render(kHi), "no");
}

TEST(Chat, NamesWhatIsWrong) {
  ScriptedModel script = saying("yes");
  const Chat chat(script.model);
  const ErrorCode wrong = ErrorCode::invalid_argument;
  test::expect_error(wrong, "messages: the text is not JSON", [&] { chat.render("[{"); });
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  test::expect_error(wrong, "messages: the text is not JSON: it is nested too deeply",
                     [&] { chat.render(deep); });
  test::expect_error(wrong, "messages must be an array", [&] { chat.render("{}"); });
  test::expect_error(wrong, "messages[0]", [&] { chat.render("[1]"); });
  test::expect_error(wrong, "tools", [&] { chat.render(kHi, {.tools = "{}"}); });
  test::expect_error(wrong, "variables", [&] { chat.render(kHi, {.variables = "[]"}); });
  ScriptedModel plain = saying("yes", "");
  test::expect_error(ErrorCode::unsupported, "no chat template",
                     [&] { const Chat none(plain.model); });
}

}  // namespace
}  // namespace edgerunner
