#pragma once

#include <string>

#include "server/fields.h"

namespace edgerunner::server {

// What a request says of tools. Its move is as safe as that of a JSON value, which the check can't
// see.
struct ToolFields {       // NOLINT(bugprone-exception-escape)
  Json tools;             // for the template, in chat's form; null where none may be called
  Json callable;          // those of them that may be called
  bool demanded = false;  // the answer must be calls
  bool parallel = true;   // several calls may come
};

// Reads tool_choice and parallel_tool_calls; `tools`, the request's own in chat's form, may be null
// or empty. A function is named as either interface does. Throws ApiError(400) naming the field.
ToolFields read_tool_fields(const Fields& fields, const Json& tools);

}  // namespace edgerunner::server
