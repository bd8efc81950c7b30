#include "server/answer_format.h"

#include <algorithm>
#include <string>

#include "chat/answer_grammar.h"
#include "constraint/json_schema.h"
#include "edgerunner/error.h"
#include "server/api_error.h"

namespace edgerunner::server {
namespace {

bool is_strict(const Json& tool) {
  const auto strict = tool["function"].find("strict");
  return strict != tool["function"].end() && *strict == true;
}

}  // namespace

Json read_answer_schema(const Json* format, const char* holder, std::string_view field) {
  const std::string name(field);
  if (format == nullptr) return nullptr;
  const std::string type = text_of(*format, "type");
  if (type == "text") return nullptr;
  if (type == "json_object") return {{"type", "object"}};
  if (type != "json_schema") {
    throw bad_request(name, "must have the type \"text\", \"json_object\" or \"json_schema\"");
  }
  const auto member = *holder == '\0' ? format->end() : format->find(holder);
  const Json& named = member == format->end() ? *format : *member;
  if (!named.is_object() || !named.contains("schema")) {
    throw bad_request(name, "must hold a schema, a JSON Schema");
  }
  try {
    compile_json_schema(named["schema"]);
  } catch (const Error& error) {
    throw ApiError(400, "invalid_request_error", error.what(), name);
  }
  return named["schema"];
}

std::shared_ptr<const Grammar> make_answer_grammar(const ToolFields& tools, const Json& schema,
                                                   OutputFormat& format) {
  AnswerShape shape{.tools = tools.callable,
                    .calls_only = tools.demanded,
                    .several_calls = tools.parallel,
                    .schema = tools.demanded ? Json() : schema};
  if (format.tool_calls == ToolCallFormat::none) {
    if (tools.demanded) {
      format.tool_calls = ToolCallFormat::hermes;
    } else {
      shape.tools = nullptr;
    }
  }
  const bool bound = shape.calls_only || !shape.several_calls ||
                     std::any_of(shape.tools.begin(), shape.tools.end(), is_strict);
  if (shape.schema.is_null() && (shape.tools.is_null() || !bound)) return nullptr;
  try {
    return std::make_shared<const Grammar>(answer_grammar(format, shape));
  } catch (const Error& error) {
    throw ApiError(400, "invalid_request_error", error.what(), "tools");
  }
}

}  // namespace edgerunner::server
