#include "server/response_items.h"

#include <utility>

#include "server/generation_call.h"

namespace edgerunner::server {

void ResponseItems::add(const OutputDelta& delta) {
  if (!delta.reasoning.empty()) add_text(Kind::reasoning, delta.reasoning);
  if (!delta.content.empty()) add_text(Kind::message, delta.content);
  for (const ToolCallDelta& call : delta.tool_calls) add_call(call);
}

void ResponseItems::finish(bool complete) {
  if (items_.empty()) open(Kind::message);
  close(complete ? "completed" : "incomplete");
}

void ResponseItems::add_text(Kind kind, const std::string& text) {
  if (!open_ || items_.back().kind != kind) {
    close("completed");
    open(kind);
  }
  items_.back().text += text;
  Json event = place(true);
  event["delta"] = text;
  if (kind == Kind::message) event["logprobs"] = Json::array();
  emit_(kind == Kind::message ? "response.output_text.delta" : "response.reasoning_text.delta",
        std::move(event));
}

void ResponseItems::add_call(const ToolCallDelta& call) {
  if (!call.name.empty()) {
    close("completed");
    open(Kind::call, call.name);
  }
  if (call.arguments.empty()) return;
  items_.back().text += call.arguments;
  Json event = place(false);
  event["delta"] = call.arguments;
  emit_("response.function_call_arguments.delta", std::move(event));
}

void ResponseItems::open(Kind kind, const std::string& name) {
  const char* const prefix = kind == Kind::reasoning ? "rs_" : kind == Kind::call ? "fc_" : "msg_";
  items_.push_back({.kind = kind, .id = new_id(prefix), .call_id = {}, .name = name, .text = {}});
  if (kind == Kind::call) items_.back().call_id = new_id("call_");
  open_ = true;
  Json item = item_json(items_.back());
  if (kind != Kind::call) item["content"] = Json::array();
  emit_("response.output_item.added",
        {{"output_index", items_.size() - 1}, {"item", std::move(item)}});
  if (kind == Kind::call) return;
  Json event = place(true);
  event["part"] = part(items_.back());
  emit_("response.content_part.added", std::move(event));
}

void ResponseItems::close(const char* status) {
  if (!std::exchange(open_, false)) return;
  Item& item = items_.back();
  item.status = status;
  Json done = place(item.kind != Kind::call);
  if (item.kind == Kind::call) {
    done["name"] = item.name;
    done["arguments"] = item.text;
    emit_("response.function_call_arguments.done", std::move(done));
  } else {
    done["text"] = item.text;
    if (item.kind == Kind::message) done["logprobs"] = Json::array();
    emit_(item.kind == Kind::message ? "response.output_text.done" : "response.reasoning_text.done",
          std::move(done));
    Json event = place(true);
    event["part"] = part(item);
    emit_("response.content_part.done", std::move(event));
  }
  emit_("response.output_item.done",
        {{"output_index", items_.size() - 1}, {"item", item_json(item)}});
}

Json ResponseItems::part(const Item& item) const {
  if (item.kind == Kind::reasoning) return {{"type", "reasoning_text"}, {"text", item.text}};
  return {{"type", "output_text"},
          {"text", item.text},
          {"annotations", Json::array()},
          {"logprobs", Json::array()}};
}

Json ResponseItems::item_json(const Item& item) const {
  switch (item.kind) {
    case Kind::call:
      return {{"id", item.id},           {"type", "function_call"}, {"status", item.status},
              {"call_id", item.call_id}, {"name", item.name},       {"arguments", item.text}};
    case Kind::reasoning:
      return {{"id", item.id},
              {"type", "reasoning"},
              {"status", item.status},
              {"summary", Json::array()},
              {"content", Json::array({part(item)})}};
    case Kind::message:
      break;
  }
  return {{"id", item.id},
          {"type", "message"},
          {"status", item.status},
          {"role", "assistant"},
          {"content", Json::array({part(item)})}};
}

Json ResponseItems::place(bool with_part) const {
  Json event = {{"item_id", items_.back().id}, {"output_index", items_.size() - 1}};
  if (with_part) event["content_index"] = 0;
  return event;
}

Json ResponseItems::to_json() const {
  Json list = Json::array();
  for (const Item& item : items_) list.push_back(item_json(item));
  return list;
}

}  // namespace edgerunner::server
