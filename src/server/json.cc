#include "server/json.h"

#include "base/parse_json.h"
#include "server/api_error.h"

namespace edgerunner::server {

Json parse_body(std::string_view body) {
  Json json;
  try {
    json = edgerunner::parse_json<Json>(body);
  } catch (const std::exception& error) {
    throw bad_request("", std::string("the body is not valid JSON: ") + error.what());
  }
  if (!json.is_object()) throw bad_request("", "the body must be a JSON object");
  return json;
}

std::string text_of(const Json& object, const char* name) {
  const auto member = object.find(name);
  return member != object.end() && member->is_string() ? member->get<std::string>() : "";
}

std::string to_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace edgerunner::server
