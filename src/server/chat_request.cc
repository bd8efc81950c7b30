#include "server/chat_request.h"

#include <fmt/format.h>

#include <utility>

#include "edgerunner/error.h"
#include "server/answer_format.h"
#include "server/api_error.h"
#include "server/lora_fields.h"
#include "server/sampling_fields.h"
#include "server/tool_fields.h"

namespace edgerunner::server {
namespace {

// Messages as the template takes them. What newer clients call the developer is the system to it.
Json read_messages(const Fields& fields) {
  fields.require("messages");
  const Json& given = *fields.array("messages");
  if (given.empty()) fields.fail("messages", "must not be empty");
  Json messages;
  try {
    messages = template_messages(given);
  } catch (const Error& error) {
    throw ApiError(400, "invalid_request_error", error.what(), "messages");
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    Json& message = messages[i];
    if (message["role"] == "developer") message["role"] = "system";
    if (message["content"].is_array()) {
      fields.fail("messages", fmt::format("has a part that is no text in messages[{}]", i));
    }
  }
  return messages;
}

std::uint32_t read_max_tokens(const Fields& fields) {
  const auto completion = fields.integer("max_completion_tokens", 1, INT32_MAX);
  const auto plain = fields.integer("max_tokens", 1, INT32_MAX);
  return static_cast<std::uint32_t>(completion.value_or(plain.value_or(0)));
}

std::optional<std::uint32_t> read_top_logprobs(const Fields& fields) {
  const bool wanted = fields.boolean("logprobs").value_or(false);
  const auto count = fields.integer("top_logprobs", 0, kMostTopLogprobs);
  if (count.value_or(0) > 0 && !wanted) {
    fields.fail("top_logprobs", "needs logprobs to be true");
  }
  if (!wanted) return std::nullopt;
  return static_cast<std::uint32_t>(count.value_or(0));
}

}  // namespace

ChatPrompt make_chat_prompt(Engine& engine, const Conversation& conversation, const Fields& fields,
                            std::string_view field) {
  const ChatTemplate& chat_template = engine.chat_template();
  ChatPrompt prompt;
  try {
    RenderedPrompt rendered = chat_template.prompt(conversation);
    prompt.ids = std::move(rendered.ids);
    prompt.format =
        detect_output_format(chat_template.source(), rendered.text, !conversation.tools.is_null());
  } catch (const Error& error) {
    throw ApiError(400, "invalid_request_error", error.what(), std::string(field));
  }
  if (prompt.ids.empty()) fields.fail(field, "give an empty prompt");
  const std::uint32_t context = engine.info().context;
  if (prompt.ids.size() > context) fail_too_long(fields, field, prompt.ids.size(), context);
  return prompt;
}

ChatRequest read_chat_request(Engine& engine, const Json& body) {
  const Fields fields(body);
  ChatRequest request;
  fields.text("model");
  request.options = read_sampling(fields, engine.info());
  request.options.adapters = read_lora(fields, engine);
  request.options.max_tokens = read_max_tokens(fields);
  request.n = static_cast<std::size_t>(fields.integer("n", 1, kMostChoices).value_or(1));
  request.top_logprobs = read_top_logprobs(fields);
  request.stream = fields.boolean("stream").value_or(false);
  request.include_usage = read_include_usage(fields);
  fields.refuse_unless("functions", Json::array(), "is not supported; use tools");
  fields.refuse_unless("function_call", "none", "is not supported; use tool_choice");

  const Json schema =
      read_answer_schema(fields.object("response_format"), "json_schema", "response_format");
  const Json* tools = fields.array("tools");
  const ToolFields tool_fields =
      read_tool_fields(fields, tools != nullptr ? *tools : Json::array());
  Conversation conversation;
  conversation.messages = read_messages(fields);
  conversation.tools = tool_fields.tools;
  if (const Json* variables = fields.object("chat_template_kwargs")) {
    conversation.variables = *variables;
  }
  request.prompt = make_chat_prompt(engine, conversation, fields, "messages");
  request.grammar = make_answer_grammar(tool_fields, schema, request.prompt.format);
  request.options.visible_tokens = marker_tokens(engine.tokenizer(), request.prompt.format);
  return request;
}

}  // namespace edgerunner::server
