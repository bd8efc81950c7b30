#include "server/chat_request.h"

#include <fmt/format.h>

#include "constraint/json_schema.h"
#include "edgerunner/error.h"
#include "server/api_error.h"
#include "server/sampling_fields.h"

namespace edgerunner::server {
namespace {

Conversation read_conversation(const Fields& fields) {
  Conversation conversation;
  fields.require("messages");
  const Json& messages = *fields.array("messages");
  if (messages.empty()) fields.fail("messages", "must not be empty");
  try {
    conversation.messages = template_messages(messages);
  } catch (const Error& error) {
    throw ApiError(400, "invalid_request_error", error.what(), "messages");
  }
  if (const Json* tools = fields.array("tools"); tools != nullptr && !tools->empty()) {
    check_tools(fields, *tools);
    if (may_call_tools(fields)) conversation.tools = *tools;
  }
  if (const Json* variables = fields.object("chat_template_kwargs")) {
    conversation.variables = *variables;
  }
  return conversation;
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

// The JSON Schema that the answer must hold for, or nothing. What can't be enforced is refused.
std::string read_response_schema(const Fields& fields) {
  const Json* format = fields.object("response_format");
  if (format == nullptr) return {};
  const std::string type(text_of(*format, "type"));
  if (type == "text") return {};
  Json schema = {{"type", "object"}};
  if (type == "json_schema") {
    const auto named = format->find("json_schema");
    if (named == format->end() || !named->is_object() || !named->contains("schema")) {
      fields.fail("response_format", "must hold json_schema.schema, a JSON Schema");
    }
    schema = (*named)["schema"];
  } else if (type != "json_object") {
    fields.fail("response_format",
                "must have the type \"text\", \"json_object\" or \"json_schema\"");
  }
  try {
    compile_json_schema(schema);
  } catch (const Error& error) {
    throw ApiError(400, "invalid_request_error", error.what(), "response_format");
  }
  return schema.dump();
}

}  // namespace

bool may_call_tools(const Fields& fields) {
  const Json* choice = fields.find("tool_choice");
  if (choice == nullptr) return true;
  if (*choice == "none") return false;
  if (*choice != "auto") fields.fail("tool_choice", "must be \"auto\" or \"none\"");
  return true;
}

void check_tools(const Fields& fields, const Json& tools) {
  for (std::size_t i = 0; i < tools.size(); ++i) {
    const std::string name = fmt::format("tools[{}]", i);
    const Json& tool = tools[i];
    if (!tool.is_object() || text_of(tool, "type") != "function" || !tool.contains("function") ||
        !tool["function"].is_object()) {
      throw bad_request("tools", fmt::format("must hold tools of type function; {} is none", name));
    }
    const Json& function = tool["function"];
    if (text_of(function, "name").empty()) {
      throw bad_request("tools", fmt::format("must name its functions; {} has no name", name));
    }
    if (function.contains("parameters") && !function["parameters"].is_object()) {
      fields.fail("tools", fmt::format("has parameters that are no schema in {}", name));
    }
  }
}

ChatPrompt make_chat_prompt(Engine& engine, const Conversation& conversation, const Fields& fields,
                            std::string_view field) {
  const ChatTemplate& chat_template = engine.chat_template();
  ChatPrompt prompt;
  try {
    const std::string text = chat_template.render(conversation);
    prompt.ids = chat_template.encode(text);
    prompt.format =
        detect_output_format(chat_template.source(), text, !conversation.tools.is_null());
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
  request.options = read_sampling(fields, engine.info().vocab_size);
  request.options.max_tokens = read_max_tokens(fields);
  request.n = static_cast<std::size_t>(fields.integer("n", 1, kMostChoices).value_or(1));
  request.top_logprobs = read_top_logprobs(fields);
  request.stream = fields.boolean("stream").value_or(false);
  request.include_usage = read_include_usage(fields);
  request.options.json_schema = read_response_schema(fields);
  request.prompt = make_chat_prompt(engine, read_conversation(fields), fields, "messages");
  request.options.visible_tokens = marker_tokens(engine.tokenizer(), request.prompt.format);
  return request;
}

}  // namespace edgerunner::server
