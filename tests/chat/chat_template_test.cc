#include "chat/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "edgerunner/error.h"
#include "support/scripted_tokenizer.h"

namespace edgerunner {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr TokenId kBos = test::ScriptedTokenizer::kFirstPiece;

// A tokenizer that adds a BOS, spelt "^" and found as such.
class BosTokenizer : public test::ScriptedTokenizer {
 public:
  BosTokenizer() : ScriptedTokenizer({"^"}) {}
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options) const override {
    std::vector<TokenId> tokens;
    if (options.add_special) tokens.push_back(kBos);
    for (const char c : text) {
      tokens.push_back(c == '^' && options.parse_special ? kBos : static_cast<unsigned char>(c));
    }
    return tokens;
  }
  TokenId bos() const override { return kBos; }
  bool adds_bos() const override { return true; }
};

TEST(ChatTemplate, RendersMessagesAndVariables) {
  const BosTokenizer tokenizer;
  const ChatTemplate chat(
      "{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}"
      "{{ extra }}{% if add_generation_prompt %}>{% endif %}",
      tokenizer);
  Conversation conversation;
  conversation.messages = {{{"role", "user"}, {"content", "hi"}}};
  conversation.variables["extra"] = 5;
  EXPECT_EQ(chat.render(conversation), "^user:hi;5>");
  conversation.add_generation_prompt = false;
  EXPECT_EQ(chat.render(conversation), "^user:hi;5");
}

TEST(ChatTemplate, HasBosOnceWhetherTheTemplateWritesItOrNot) {
  const BosTokenizer tokenizer;
  const ChatTemplate chat("x", tokenizer);
  EXPECT_THAT(chat.encode("^a"), ElementsAre(kBos, 'a'));
  EXPECT_THAT(chat.encode("a"), ElementsAre(kBos, 'a'));
  EXPECT_THAT(chat.encode(""), ElementsAre(kBos));
}

TEST(ChatTemplate, RefusesAModelWithoutOne) {
  const BosTokenizer tokenizer;
  try {
    const ChatTemplate chat("", tokenizer);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
  }
}

TEST(TemplateMessages, OpensWhatOpenAiClosesUp) {
  const Json messages = Json::parse(R"([
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{\"x\": 1}"}}]},
    {"role": "assistant", "content": "", "tool_calls": [{"function": {"arguments": "no"}}]}])");
  const Json made = template_messages(messages);
  EXPECT_EQ(made[0]["content"], "ab");
  EXPECT_TRUE(made[1]["content"].is_null());
  EXPECT_EQ(made[1]["tool_calls"][0]["function"]["arguments"]["x"], 1);
  EXPECT_EQ(made[2]["tool_calls"][0]["function"]["arguments"], "no");
}

TEST(TemplateMessages, NamesTheMessageThatIsNone) {
  for (const char* text :
       {R"([{"role": "user"}, {"content": "x"}])", R"([{"role": "user"}, {"role": 3}])",
        R"([{"role": "user"}, 7])", R"([{"role": "user"}, {"role": "user", "content": 5}])"}) {
    try {
      template_messages(Json::parse(text));
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("messages[1]"));
    }
  }
}

TEST(LocalTime, IsReadAndWritten) {
  const LocalTime time = parse_local_time("2026-01-02T03:04:05");
  EXPECT_EQ(format_time(time, "%d %b %Y %H:%M:%S %A %j"), "02 Jan 2026 03:04:05 Friday 002");
  EXPECT_EQ(format_time(time, ""), "");
  EXPECT_THROW(parse_local_time("2026-02-30T00:00:00"), Error);
  EXPECT_THROW(parse_local_time("now"), Error);
}

}  // namespace
}  // namespace edgerunner
