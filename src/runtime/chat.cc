#include "edgerunner/chat.h"

#include <fmt/format.h>

#include <deque>
#include <utility>

#include "base/parse_json.h"
#include "chat/chat_template.h"
#include "chat/output_parser.h"
#include "edgerunner/error.h"

namespace edgerunner {
namespace {

using Json = nlohmann::ordered_json;

Json parse(std::string_view text, const char* what) {
  try {
    return parse_json<Json>(text);
  } catch (const std::exception& error) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: the text is not JSON: {}", what, error.what()));
  }
}

Conversation make_conversation(std::string_view messages, const ChatOptions& options) {
  Conversation conversation;
  conversation.messages = template_messages(parse(messages, "messages"));
  if (!options.tools.empty()) {
    conversation.tools = parse(options.tools, "tools");
    if (!conversation.tools.is_array()) {
      throw Error(ErrorCode::invalid_argument, "tools must be a JSON array of tools");
    }
  }
  if (!options.variables.empty()) {
    conversation.variables = parse(options.variables, "variables");
    if (!conversation.variables.is_object()) {
      throw Error(ErrorCode::invalid_argument,
                  "variables must be a JSON object whose members are the template's variables");
    }
  }
  return conversation;
}

}  // namespace

struct ChatReply::State {
  Generation generation;
  OutputParser parser;
  std::deque<ChatPiece> ready = {};
  std::vector<ToolCall> calls = {};
  bool at_end = false;

  void take(OutputDelta delta) {
    if (!delta.reasoning.empty()) ready.push_back({std::move(delta.reasoning), true});
    if (!delta.content.empty()) ready.push_back({std::move(delta.content), false});
    for (const ToolCallDelta& piece : delta.tool_calls) {
      if (piece.index >= calls.size()) calls.resize(piece.index + 1);
      calls[piece.index].name += piece.name;
      calls[piece.index].arguments += piece.arguments;
    }
  }

  // What the generation writes next, which may be no piece of the answer yet.
  void advance() {
    const Generation::Iterator piece = generation.begin();
    at_end = piece == generation.end();
    take(at_end ? parser.finish() : parser.push(*piece));
  }
};

ChatReply::ChatReply(std::unique_ptr<State> state) : state_(std::move(state)) {}
ChatReply::ChatReply(ChatReply&&) noexcept = default;
ChatReply& ChatReply::operator=(ChatReply&&) noexcept = default;
ChatReply::~ChatReply() = default;

std::optional<ChatPiece> ChatReply::next() {
  while (state_->ready.empty() && !state_->at_end) state_->advance();
  if (state_->ready.empty()) return std::nullopt;
  ChatPiece piece = std::move(state_->ready.front());
  state_->ready.pop_front();
  return piece;
}

bool ChatReply::wait_for(std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point until = Clock::now() + timeout;
  while (state_->ready.empty() && !state_->at_end) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (!state_->generation.wait_for(left)) return false;
    state_->advance();
  }
  return true;
}

void ChatReply::cancel() { state_->generation.cancel(); }

const std::vector<ToolCall>& ChatReply::tool_calls() const { return state_->calls; }

const Summary& ChatReply::summary() {
  state_->at_end = true;
  state_->ready.clear();
  return state_->generation.summary();
}

struct Chat::State {
  Model* model;
  ChatTemplate chat_template;
};

Chat::Chat(Model& model)
    : state_(std::make_unique<State>(
          State{.model = &model,
                .chat_template = ChatTemplate(model.info().chat_template, model.tokenizer())})) {}
Chat::Chat(Chat&&) noexcept = default;
Chat& Chat::operator=(Chat&&) noexcept = default;
Chat::~Chat() = default;

std::string Chat::render(std::string_view messages, const ChatOptions& options) const {
  return state_->chat_template.render(make_conversation(messages, options));
}

ChatReply Chat::reply(std::string_view messages, const GenerateOptions& generate,
                      const ChatOptions& options, std::stop_token stop) const {
  const ChatTemplate& chat_template = state_->chat_template;
  const RenderedPrompt prompt = chat_template.prompt(make_conversation(messages, options));
  const OutputFormat format =
      detect_output_format(chat_template.source(), prompt.text, !options.tools.empty());
  GenerateOptions chosen = generate;
  chosen.visible_tokens = marker_tokens(state_->model->tokenizer(), format);
  return ChatReply(std::make_unique<ChatReply::State>(
      ChatReply::State{.generation = state_->model->generate(prompt.ids, chosen, std::move(stop)),
                       .parser = OutputParser(format)}));
}

}  // namespace edgerunner
