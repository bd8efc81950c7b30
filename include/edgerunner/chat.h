#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "edgerunner/generation.h"
#include "edgerunner/model.h"

namespace edgerunner {

// What a chat template is given beside the messages. JSON is handed over as text.
struct ChatOptions {
  // An array of tools in OpenAI's form; empty: none, and no calls are looked for in the answer.
  std::string tools;
  std::string variables;  // an object: further variables of the template, such as enable_thinking
};

// A call of a tool, as the model wrote it.
struct ToolCall {
  std::string name;
  std::string arguments;  // the text of a JSON object
};

// A piece of an answer: valid UTF-8, not empty.
struct ChatPiece {
  std::string text;
  bool reasoning = false;  // of what stands between <think> and </think>, before the answer
};

// One running answer, divided into content, reasoning and calls of tools; the marks between them
// are left out. It runs ahead of its reader. Destroying it cancels it. One thread may read;
// cancel() may be called from any.
class ChatReply {
 public:
  ChatReply(ChatReply&&) noexcept;
  ChatReply& operator=(ChatReply&&) noexcept;
  ~ChatReply();

  // Waits for the next piece; nullopt at the end. Throws as Generation::begin() does.
  std::optional<ChatPiece> next();

  // Waits for at most so long; whether next() would not wait. Throws as next() does.
  bool wait_for(std::chrono::milliseconds timeout);

  // Takes effect before the next forward pass.
  void cancel();

  // Those read so far; all of them after the last piece.
  const std::vector<ToolCall>& tool_calls() const;

  // Waits for the end (dropping pieces not yet read) and gives the summary, or throws the error.
  const Summary& summary();

  struct State;
  explicit ChatReply(std::unique_ptr<State> state);  // made by Chat

 private:
  std::unique_ptr<State> state_;
};

// Conversations with a model, by the chat template of its file. The caller hands over the whole
// conversation each time; what the model has seen of it is in its cache, so that only the new turn
// is computed. Immutable: any thread may use it.
//   edgerunner::Chat chat(model);
//   auto reply = chat.reply(R"([{"role": "user", "content": "Hello"}])");
//   while (const auto piece = reply.next()) std::cout << piece->text << std::flush;
class Chat {
 public:
  // Throws Error(unsupported) where the file has no template, or one that uses what templates here
  // have not (with line and column). `model` must live as long, in the same place.
  explicit Chat(Model& model);
  Chat(Chat&&) noexcept;
  Chat& operator=(Chat&&) noexcept;
  ~Chat();

  // The prompt that the template makes of `messages`, a JSON array of messages in OpenAI's form.
  // Throws Error(invalid_argument) that names what is wrong with them, or says what the template
  // itself raised.
  std::string render(std::string_view messages, const ChatOptions& options = {}) const;

  // Starts an answer. What the messages spell is plain text, never a control token. Throws as
  // render() and Model::generate() do. The options' visible_tokens are chosen here.
  ChatReply reply(std::string_view messages, const GenerateOptions& generate = {},
                  const ChatOptions& options = {}, std::stop_token stop = {}) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace edgerunner
