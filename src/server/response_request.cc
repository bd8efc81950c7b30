#include "server/response_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "edgerunner/error.h"
#include "server/answer_format.h"
#include "server/api_error.h"
#include "server/lora_fields.h"
#include "server/sampling_fields.h"
#include "server/tool_fields.h"

namespace edgerunner::server {
namespace {

std::string text_member(const Json& item, const char* name, std::size_t index) {
  const auto member = item.find(name);
  if (member == item.end() || !member->is_string()) {
    throw bad_request("input", fmt::format("item {} must have a string as {}", index, name));
  }
  return member->get<std::string>();
}

// Content in this interface's parts, as chat templates know it.
Json chat_content(const Json& content, std::size_t index) {
  if (!content.is_array()) return content;
  Json parts = Json::array();
  for (const Json& part : content) {
    const std::string type = part.is_object() ? text_of(part, "type") : "";
    if (type != "input_text" && type != "output_text" && type != "text") {
      throw bad_request("input", fmt::format("item {} has a part that is no text", index));
    }
    parts.push_back({{"type", "text"}, {"text", text_member(part, "text", index)}});
  }
  return parts;
}

// Calls of functions that follow one another belong to one message of the assistant.
void add_call(Json& messages, const Json& item, std::size_t index) {
  if (messages.empty() || messages.back()["role"] != "assistant") {
    messages.push_back({{"role", "assistant"}, {"content", ""}});
  }
  messages.back()["tool_calls"].push_back(
      {{"id", text_member(item, "call_id", index)},
       {"type", "function"},
       {"function",
        {{"name", text_member(item, "name", index)},
         {"arguments", text_member(item, "arguments", index)}}}});
}

void add_item(Json& messages, const Json& item, std::size_t index) {
  if (!item.is_object()) throw bad_request("input", fmt::format("item {} is no object", index));
  const std::string type = item.contains("type") ? text_of(item, "type") : "message";
  if (type == "function_call") return add_call(messages, item, index);
  if (type == "function_call_output") {
    messages.push_back({{"role", "tool"},
                        {"tool_call_id", text_member(item, "call_id", index)},
                        {"content", text_member(item, "output", index)}});
    return;
  }
  if (type == "reasoning") return;  // templates leave earlier reasoning out
  if (type != "message") {
    throw bad_request(
        "input", fmt::format("item {} has the type \"{}\", which is not supported", index, type));
  }
  std::string role = text_member(item, "role", index);
  if (role == "developer") role = "system";
  messages.push_back(
      {{"role", role}, {"content", chat_content(item.value("content", Json()), index)}});
}

Json read_messages(const Fields& fields) {
  Json messages = Json::array();
  if (const auto instructions = fields.text("instructions")) {
    messages.push_back({{"role", "system"}, {"content", *instructions}});
  }
  const Json& input = fields.require("input");
  if (input.is_string()) {
    messages.push_back({{"role", "user"}, {"content", input}});
    return messages;
  }
  if (!input.is_array() || input.empty()) {
    fields.fail("input", "must be a string or an array of items, not empty");
  }
  for (std::size_t i = 0; i < input.size(); ++i) add_item(messages, input[i], i);
  return messages;
}

// Tools in chat's form, which templates know: what lies flat here is a member "function" there.
Json read_tools(const Fields& fields) {
  const Json* tools = fields.array("tools");
  Json converted = Json::array();
  if (tools == nullptr) return converted;
  for (const Json& tool : *tools) {
    if (!tool.is_object() || text_of(tool, "type") != "function") {
      fields.fail("tools", "must be of type function");
    }
    Json function = tool;
    function.erase("type");
    converted.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return converted;
}

}  // namespace

ResponseRequest read_response_request(Engine& engine, const Json& body) {
  const Fields fields(body);
  ResponseRequest request;
  fields.text("model");
  fields.refuse_unless("previous_response_id", nullptr,
                       "is not supported: nothing is stored; send the whole conversation as input");
  fields.refuse_unless("background", false, "is not supported");
  const Json* const text = fields.object("text");
  const Json* const format = text != nullptr ? Fields(*text, "text.").object("format") : nullptr;
  const Json schema = read_answer_schema(format, "", "text.format");
  request.options = read_sampling(fields, engine.info());
  request.options.adapters = read_lora(fields, engine);
  request.options.max_tokens =
      static_cast<std::uint32_t>(fields.integer("max_output_tokens", 1, INT32_MAX).value_or(0));
  request.stream = fields.boolean("stream").value_or(false);

  Conversation conversation;
  try {
    conversation.messages = template_messages(read_messages(fields));
  } catch (const Error& error) {
    throw ApiError(400, "invalid_request_error", error.what(), "input");
  }
  const ToolFields tools = read_tool_fields(fields, read_tools(fields));
  conversation.tools = tools.tools;
  request.prompt = make_chat_prompt(engine, conversation, fields, "input");
  request.grammar = make_answer_grammar(tools, schema, request.prompt.format);
  request.options.visible_tokens = marker_tokens(engine.tokenizer(), request.prompt.format);

  const auto or_null = [&body](const char* name) { return body.value(name, Json()); };
  request.echoed = {{"instructions", or_null("instructions")},
                    {"max_output_tokens", or_null("max_output_tokens")},
                    {"metadata", body.value("metadata", Json::object())},
                    {"parallel_tool_calls", body.value("parallel_tool_calls", Json(true))},
                    {"temperature", request.options.sampling.temperature},
                    {"text", {{"format", format != nullptr ? *format : Json({{"type", "text"}})}}},
                    {"tool_choice", body.value("tool_choice", Json("auto"))},
                    {"tools", body.value("tools", Json::array())},
                    {"top_p", request.options.sampling.top_p}};
  return request;
}

}  // namespace edgerunner::server
