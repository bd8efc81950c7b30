#include "server/json.h"

#include "server/api_error.h"

namespace edgerunner::server {
namespace {

constexpr int kMostLevels = 128;  // what is below recurses

}  // namespace

Json parse_body(std::string_view body) {
  const auto check_depth = [](int depth, Json::parse_event_t, Json&) {
    if (depth > kMostLevels) throw bad_request("", "the body is nested too deeply");
    return true;
  };
  try {
    Json json = Json::parse(body, check_depth);
    if (!json.is_object()) throw bad_request("", "the body must be a JSON object");
    return json;
  } catch (const Json::parse_error& error) {
    throw bad_request("", std::string("the body is not valid JSON: ") + error.what());
  }
}

std::string text_of(const Json& object, const char* name) {
  const auto member = object.find(name);
  return member != object.end() && member->is_string() ? member->get<std::string>() : "";
}

std::string to_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace edgerunner::server
