#include "chat/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/parse_json.h"
#include "chat/control_marks.h"
#include "chat/jinja/template.h"
#include "edgerunner/error.h"

namespace edgerunner {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void fail(std::size_t index, std::string_view what) {
  throw Error(ErrorCode::invalid_argument, fmt::format("messages[{}]: {}", index, what));
}

bool is_text_part(const Json& part) {
  return part.is_object() && part.value("type", "") == "text" && part.contains("text") &&
         part["text"].is_string();
}

// Several texts as one, as most templates want it; a list with anything else stays a list.
Json joined_content(const Json& content) {
  if (!content.is_array() || !std::all_of(content.begin(), content.end(), is_text_part)) {
    return content;
  }
  std::string text;
  for (const Json& part : content) text += part["text"].get_ref<const std::string&>();
  return text;
}

// OpenAI's API has the arguments of a call as a string of JSON, templates as what it says.
void open_arguments(Json& call) {
  if (!call.is_object() || !call.contains("function") || !call["function"].is_object()) return;
  Json& function = call["function"];
  if (!function.contains("arguments") || !function["arguments"].is_string()) return;
  try {
    Json arguments = parse_json<Json>(function["arguments"].get_ref<const std::string&>());
    if (arguments.is_object()) function["arguments"] = std::move(arguments);
  } catch (const std::exception&) {
    // A string that is no JSON stays one.
  }
}

}  // namespace

Json template_messages(const Json& messages) {
  if (!messages.is_array()) {
    throw Error(ErrorCode::invalid_argument, "messages must be an array of messages");
  }
  Json result = messages;
  for (std::size_t i = 0; i < result.size(); ++i) {
    Json& message = result[i];
    if (!message.is_object()) fail(i, "a message must be an object");
    if (!message.contains("role") || !message["role"].is_string()) {
      fail(i, "a message needs a role, a string");
    }
    message["content"] = message.contains("content") ? joined_content(message["content"]) : Json();
    const Json& content = message["content"];
    if (!content.is_null() && !content.is_string() && !content.is_array()) {
      fail(i, "the content must be a string, a list of parts or null");
    }
    if (!message.contains("tool_calls") || !message["tool_calls"].is_array()) continue;
    for (Json& call : message["tool_calls"]) open_arguments(call);
  }
  return result;
}

struct ChatTemplate::State {
  std::string source;
  jinja::Template compiled;
  const Tokenizer* tokenizer;
  ControlMarks marks;
  std::string bos;
  std::string eos;
};

ChatTemplate::ChatTemplate(std::string source, const Tokenizer& tokenizer) {
  if (source.empty()) {
    throw Error(ErrorCode::unsupported,
                "the model file has no chat template (tokenizer.chat_template); give it a plain "
                "prompt instead");
  }
  const auto spelling = [&tokenizer](TokenId token) {
    return token == kNoToken ? std::string() : tokenizer.token_bytes(token, true);
  };
  jinja::Template compiled(source);
  state_ = std::make_unique<State>(State{.source = std::move(source),
                                         .compiled = std::move(compiled),
                                         .tokenizer = &tokenizer,
                                         .marks = ControlMarks(tokenizer),
                                         .bos = spelling(tokenizer.bos()),
                                         .eos = spelling(tokenizer.eos())});
}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

const std::string& ChatTemplate::source() const { return state_->source; }

std::string ChatTemplate::render(const Conversation& conversation) const {
  return render(conversation, local_time_now());
}

std::string ChatTemplate::render(const Conversation& conversation, const LocalTime& now) const {
  Json variables = {{"messages", conversation.messages},
                    {"tools", conversation.tools},
                    {"documents", nullptr},
                    {"add_generation_prompt", conversation.add_generation_prompt}};
  if (!state_->bos.empty()) variables["bos_token"] = state_->bos;
  if (!state_->eos.empty()) variables["eos_token"] = state_->eos;
  for (const auto& [name, value] : conversation.variables.items()) variables[name] = value;
  return state_->compiled.render(variables, now);
}

RenderedPrompt ChatTemplate::prompt(const Conversation& conversation) const {
  const Json given =
      Json::array({conversation.messages, conversation.tools, conversation.variables});
  if (!state_->marks.spells(given)) {
    std::string text = render(conversation);
    std::vector<TokenId> ids = encode(text, {});
    return {std::move(text), std::move(ids)};
  }
  const std::string mark = ControlMarks::mark_for(
      given.dump(-1, ' ', false, Json::error_handler_t::replace) + state_->source);
  Conversation marked = conversation;
  marked.messages = state_->marks.put(conversation.messages, mark);
  marked.tools = state_->marks.put(conversation.tools, mark);
  marked.variables = state_->marks.put(conversation.variables, mark);
  ControlMarks::Text taken = ControlMarks::take(render(marked), mark);
  std::vector<TokenId> ids = encode(taken.text, taken.plain);
  return {std::move(taken.text), std::move(ids)};
}

std::vector<TokenId> ChatTemplate::encode(std::string_view text,
                                          std::span<const std::size_t> plain) const {
  const Tokenizer& tokenizer = *state_->tokenizer;
  std::vector<TokenId> ids =
      tokenizer.encode(text, {.add_special = false, .parse_special = true, .plain = plain});
  if (tokenizer.adds_bos() && (ids.empty() || ids.front() != tokenizer.bos())) {
    ids.insert(ids.begin(), tokenizer.bos());
  }
  return ids;
}

}  // namespace edgerunner
