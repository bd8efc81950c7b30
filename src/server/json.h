#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace edgerunner::server {

// Members keep their order: templates and schemas depend on it.
using Json = nlohmann::ordered_json;

// Throws ApiError for what is not JSON, is nested deeper than a request ever is, or is no object.
Json parse_body(std::string_view body);

// A member of an object that is a string; empty where it is absent or something else.
std::string text_of(const Json& object, const char* name);

// One line; bytes that are not UTF-8 become U+FFFD.
std::string to_text(const Json& json);

}  // namespace edgerunner::server
