#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chat/local_time.h"
#include "edgerunner/tokenizer.h"
#include "edgerunner/types.h"

namespace edgerunner {

// What a chat template is given.
struct Conversation {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  nlohmann::ordered_json tools;  // an array of tools in OpenAI's form, or null
  bool add_generation_prompt = true;
  nlohmann::ordered_json variables = nlohmann::ordered_json::object();  // further ones, by name
};

// Messages in OpenAI's form as templates expect them: the arguments of tool calls as objects where
// they are strings that hold one, content that is a list of text parts as one string, a missing
// content as null. Throws Error(invalid_argument) naming the message where they are no messages.
nlohmann::ordered_json template_messages(const nlohmann::ordered_json& messages);

struct RenderedPrompt {
  std::string text;
  std::vector<TokenId> ids;
};

// A model's chat template: conversations to prompts. Immutable; any thread may use it.
class ChatTemplate {
 public:
  // Parses the source (ModelInfo::chat_template). The template sees `bos_token` and `eos_token` as
  // the tokenizer spells them. Throws Error(unsupported or invalid_file) with line and column.
  // `tokenizer` must live as long.
  ChatTemplate(std::string source, const Tokenizer& tokenizer);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  const std::string& source() const;

  // The text of the prompt. Throws Error(invalid_argument) with what the template itself raises
  // (roles that must alternate, ...) or with line and column of what failed, Error(out_of_memory)
  // where the template takes more steps or memory than a prompt can need.
  std::string render(const Conversation& conversation) const;
  std::string render(const Conversation& conversation, const LocalTime& now) const;

  // The text and its ids. The control tokens that the template wrote are parsed; what the
  // conversation's own strings spell is plain text. BOS stands at the front exactly once where the
  // tokenizer adds it, whether the template wrote it or not. Throws as render() does.
  RenderedPrompt prompt(const Conversation& conversation) const;

 private:
  std::vector<TokenId> encode(std::string_view text, std::span<const std::size_t> plain) const;

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace edgerunner
