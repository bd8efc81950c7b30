#include "server/tool_fields.h"

#include <fmt/format.h>

namespace edgerunner::server {
namespace {

void check_tool(const Fields& fields, const Json& tool, const std::string& name) {
  if (!tool.is_object() || text_of(tool, "type") != "function" || !tool.contains("function") ||
      !tool["function"].is_object()) {
    fields.fail("tools", fmt::format("must hold tools of type function; {} is none", name));
  }
  const Json& function = tool["function"];
  if (text_of(function, "name").empty()) {
    fields.fail("tools", fmt::format("must name its functions; {} has no name", name));
  }
  const auto parameters = function.find("parameters");
  if (parameters != function.end() && !parameters->is_object() && !parameters->is_null()) {
    fields.fail("tools", fmt::format("has parameters that are no schema in {}", name));
  }
}

// The name in {"type": "function", "function": {"name": ...}}, as chat has it, or {"type":
// "function", "name": ...}.
std::string chosen_function(const Fields& fields, const Json& choice) {
  std::string name;
  if (choice.is_object() && text_of(choice, "type") == "function") {
    const auto function = choice.find("function");
    const bool nested = function != choice.end() && function->is_object();
    name = text_of(nested ? *function : choice, "name");
  }
  if (name.empty()) {
    fields.fail("tool_choice", "must be \"auto\", \"none\", \"required\" or name a function");
  }
  return name;
}

}  // namespace

ToolFields read_tool_fields(const Fields& fields, const Json& tools) {
  ToolFields result;
  result.parallel = fields.boolean("parallel_tool_calls").value_or(true);
  for (std::size_t i = 0; i < tools.size(); ++i) {
    check_tool(fields, tools[i], fmt::format("tools[{}]", i));
  }
  const Json* const choice = fields.find("tool_choice");
  const bool open = choice == nullptr || *choice == "auto" || *choice == "none";
  const std::string name =
      open || *choice == "required" ? std::string() : chosen_function(fields, *choice);
  if (tools.empty()) {
    if (!open) fields.fail("tool_choice", "demands a call, and there are no tools");
    return result;
  }
  if (choice != nullptr && *choice == "none") return result;
  result.tools = tools;
  result.demanded = !open;
  if (name.empty()) {
    result.callable = tools;
    return result;
  }
  result.parallel = false;
  for (const Json& tool : tools) {
    if (tool["function"]["name"] == name) result.callable = Json::array({tool});
  }
  if (result.callable.is_null()) {
    fields.fail("tool_choice", fmt::format("names \"{}\", which is none of the tools", name));
  }
  return result;
}

}  // namespace edgerunner::server
