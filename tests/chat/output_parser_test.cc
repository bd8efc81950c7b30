#include "chat/output_parser.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "support/scripted_tokenizer.h"

namespace edgerunner {
namespace {

struct Parsed {
  std::string reasoning;
  std::string content;
  std::vector<std::string> names;
  std::vector<std::string> arguments;
  bool operator==(const Parsed&) const = default;
};

void add(Parsed& all, const OutputDelta& delta) {
  all.reasoning += delta.reasoning;
  all.content += delta.content;
  for (const ToolCallDelta& call : delta.tool_calls) {
    if (call.index == all.names.size()) {
      EXPECT_FALSE(call.name.empty());
      all.names.push_back(call.name);
      all.arguments.emplace_back();
    } else {
      EXPECT_TRUE(call.name.empty());
    }
    ASSERT_LT(call.index, all.names.size());
    all.arguments[call.index] += call.arguments;
  }
}

Parsed parse_in_pieces(const OutputFormat& format, std::string_view text, std::size_t size) {
  OutputParser parser(format);
  Parsed all;
  for (std::size_t at = 0; at < text.size(); at += size)
    add(all, parser.push(text.substr(at, size)));
  add(all, parser.finish());
  EXPECT_EQ(parser.tool_calls(), all.names.size());
  return all;
}

// However it is cut, the sum is the same.
Parsed parse(const OutputFormat& format, std::string_view text) {
  const Parsed whole = parse_in_pieces(format, text, text.size() + 1);
  for (std::size_t size = 1; size < 12; ++size) {
    EXPECT_EQ(parse_in_pieces(format, text, size).content, whole.content) << size;
    EXPECT_TRUE(parse_in_pieces(format, text, size) == whole) << text << " in pieces of " << size;
  }
  return whole;
}

constexpr OutputFormat kPlain = {};
constexpr OutputFormat kThinks = {.reasoning = true};
constexpr OutputFormat kHermes = {.tool_calls = ToolCallFormat::hermes, .reasoning = true};
constexpr OutputFormat kLlama = {.tool_calls = ToolCallFormat::llama3};
constexpr OutputFormat kMistral = {.tool_calls = ToolCallFormat::mistral};

TEST(OutputParser, PassesPlainTextOn) {
  EXPECT_EQ(parse(kPlain, " a <think> b\n").content, " a <think> b\n");
}

TEST(OutputParser, SeparatesReasoning) {
  const Parsed parsed = parse(kThinks, "<think>\nfirst,\n\nthen\n</think>\n\nThe answer.\n");
  EXPECT_EQ(parsed.reasoning, "first,\n\nthen");
  EXPECT_EQ(parsed.content, "The answer.\n");
}

TEST(OutputParser, TakesReasoningThatThePromptBegan) {
  const OutputFormat format = {.reasoning = true, .starts_in_reasoning = true};
  const Parsed parsed = parse(format, "hm </thin no</think>yes");
  EXPECT_EQ(parsed.reasoning, "hm </thin no");
  EXPECT_EQ(parsed.content, "yes");
}

TEST(OutputParser, KeepsReasoningThatNeverEnds) {
  const Parsed parsed = parse(kThinks, "<think>so </thi");
  EXPECT_EQ(parsed.reasoning, "so </thi");
  EXPECT_EQ(parsed.content, "");
}

TEST(OutputParser, LooksForReasoningAtTheFrontOnly) {
  const Parsed parsed = parse(kThinks, "I say <think>no</think>");
  EXPECT_EQ(parsed.content, "I say <think>no</think>");
  EXPECT_EQ(parsed.reasoning, "");
}

TEST(OutputParser, ReadsHermesCalls) {
  const Parsed parsed = parse(
      kHermes,
      "<think>look</think>\n\nLet me see.\n<tool_call>\n{\"name\": \"find\", \"arguments\": "
      "{\"q\": \"a }\\\" b\", \"n\": [1, {}]}}\n</tool_call>\n<tool_call>\n{\"arguments\": {}, "
      "\"name\": \"stop\"}\n</tool_call>\n");
  EXPECT_EQ(parsed.reasoning, "look");
  EXPECT_EQ(parsed.content, "Let me see.");
  ASSERT_EQ(parsed.names.size(), 2U);
  EXPECT_EQ(parsed.names[0], "find");
  EXPECT_EQ(parsed.arguments[0], "{\"q\": \"a }\\\" b\", \"n\": [1, {}]}");
  EXPECT_EQ(parsed.names[1], "stop");
  EXPECT_EQ(parsed.arguments[1], "{}");
}

TEST(OutputParser, GivesBackWhatIsNoCall) {
  for (const std::string text :
       {"<tool_call>not json</tool_call>", "<tool_call>\n{\"x\": 1}</tool_call>", "a <tool_cal",
        "<tool_call>{\"name\": 5}", "<tool_call>{\"name\": \"f\"", "<tool_call>"}) {
    const Parsed parsed = parse(kHermes, text);
    EXPECT_EQ(parsed.content, text);
    EXPECT_TRUE(parsed.names.empty());
  }
}

TEST(OutputParser, StreamsArgumentsAsTheyCome) {
  OutputParser parser(kHermes);
  parser.push("<tool_call>{\"name\": \"f\", \"arguments\": {\"a\"");
  const OutputDelta delta = parser.push(": 1");
  ASSERT_EQ(delta.tool_calls.size(), 1U);
  EXPECT_EQ(delta.tool_calls[0].arguments, ": 1");
}

TEST(OutputParser, ReadsLlamaCalls) {
  for (const std::string front : {"", "<|python_tag|>", "\n"}) {
    const Parsed parsed = parse(kLlama, front + "{\"name\": \"f\", \"parameters\": {\"x\": 1}}");
    ASSERT_EQ(parsed.names.size(), 1U);
    EXPECT_EQ(parsed.names[0], "f");
    EXPECT_EQ(parsed.arguments[0], "{\"x\": 1}");
    EXPECT_EQ(parsed.content, "");
  }
  EXPECT_EQ(parse(kLlama, "{\"name\":\"a\",\"parameters\":{}}; {\"name\":\"b\",\"parameters\":{}}")
                .names.size(),
            2U);
}

TEST(OutputParser, LeavesOtherJsonOfLlamaAlone) {
  EXPECT_EQ(parse(kLlama, "{\"answer\": 42}").content, "{\"answer\": 42}");
  EXPECT_EQ(parse(kLlama, "Use {\"name\": \"f\"}").content, "Use {\"name\": \"f\"}");
}

TEST(OutputParser, ReadsMistralCalls) {
  const Parsed list = parse(kMistral,
                            "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"x\": 1}, \"id\": "
                            "\"abc\"}, {\"name\": \"g\", \"arguments\": {}}]");
  ASSERT_EQ(list.names.size(), 2U);
  EXPECT_EQ(list.arguments[0], "{\"x\": 1}");
  EXPECT_EQ(list.names[1], "g");
  EXPECT_EQ(list.content, "");
  const Parsed named = parse(kMistral, "Well. [TOOL_CALLS]f[ARGS]{\"x\": {}}[TOOL_CALLS]g{}");
  ASSERT_EQ(named.names.size(), 2U);
  EXPECT_EQ(named.names[0], "f");
  EXPECT_EQ(named.arguments[0], "{\"x\": {}}");
  EXPECT_EQ(named.arguments[1], "{}");
  EXPECT_EQ(named.content, "Well.");
}

TEST(ReasoningTokens, AreThoseUpToTheEndOfReasoning) {
  const test::ScriptedTokenizer tokenizer;
  const auto count = [&tokenizer](const OutputFormat& format, std::string_view text) {
    return reasoning_tokens(tokenizer, format, tokenizer.encode(text, {}));
  };
  EXPECT_EQ(count(kThinks, "<think>hm</think>yes"), 17U);
  EXPECT_EQ(count(kThinks, "\n<think>hm"), 10U);
  EXPECT_EQ(count(kThinks, "yes <think>no</think>"), 0U);
  EXPECT_EQ(count({.reasoning = true, .starts_in_reasoning = true}, "hm</think>yes"), 10U);
  EXPECT_EQ(count(kPlain, "<think>hm</think>yes"), 0U);
}

TEST(OutputFormat, IsFoundByTheMarksOfATemplate) {
  EXPECT_EQ(detect_output_format("..<tool_call>..", "", true).tool_calls, ToolCallFormat::hermes);
  EXPECT_EQ(detect_output_format("..<tool_call>..", "", false).tool_calls, ToolCallFormat::none);
  EXPECT_EQ(detect_output_format("[TOOL_CALLS]", "", true).tool_calls, ToolCallFormat::mistral);
  EXPECT_EQ(detect_output_format("<|start_header_id|>", "", true).tool_calls,
            ToolCallFormat::llama3);
  EXPECT_TRUE(detect_output_format("</think>", "a<think>\n", true).starts_in_reasoning);
  EXPECT_FALSE(
      detect_output_format("</think>", "<think>\n\n</think>\n\n", true).starts_in_reasoning);
}

}  // namespace
}  // namespace edgerunner
