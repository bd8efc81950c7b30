#include "server/chat_message.h"

#include "server/generation_call.h"

namespace edgerunner::server {

OutputDelta ChatMessage::push(const std::string& text) { return add(parser_.push(text)); }
OutputDelta ChatMessage::finish() { return add(parser_.finish()); }

OutputDelta ChatMessage::add(OutputDelta delta) {
  reasoning_ += delta.reasoning;
  content_ += delta.content;
  for (const ToolCallDelta& call : delta.tool_calls) {
    if (call.index >= calls_.size()) {
      calls_.resize(call.index + 1);
      calls_.back().id = new_id("call_");
    }
    calls_[call.index].name += call.name;
    calls_[call.index].arguments += call.arguments;
  }
  return delta;
}

Json ChatMessage::to_json() const {
  Json message = {{"role", "assistant"}, {"content", content_}, {"refusal", nullptr}};
  if (content_.empty() && calls_tools()) message["content"] = nullptr;
  if (!reasoning_.empty()) message["reasoning_content"] = reasoning_;
  for (const ToolCall& call : calls_) {
    message["tool_calls"].push_back(
        {{"id", call.id},
         {"type", "function"},
         {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return message;
}

Json ChatMessage::to_json(const OutputDelta& delta) const {
  Json chunk = Json::object();
  if (!delta.reasoning.empty()) chunk["reasoning_content"] = delta.reasoning;
  if (!delta.content.empty()) chunk["content"] = delta.content;
  for (const ToolCallDelta& call : delta.tool_calls) {
    Json entry = {{"index", call.index}};
    Json function = Json::object();
    if (!call.name.empty()) {
      entry["id"] = calls_[call.index].id;
      entry["type"] = "function";
      function["name"] = call.name;
    }
    function["arguments"] = call.arguments;
    entry["function"] = std::move(function);
    chunk["tool_calls"].push_back(std::move(entry));
  }
  return chunk;
}

}  // namespace edgerunner::server
