#pragma once

#include "server/chat_request.h"
#include "server/engine.h"
#include "server/json.h"

namespace edgerunner::server {

// A request of /v1/responses. Its move is as safe as that of a JSON value, which the check can't
// see.
struct ResponseRequest {  // NOLINT(bugprone-exception-escape)
  ChatPrompt prompt;
  GenerateOptions options;
  std::shared_ptr<const Grammar> grammar;  // what the answer is held to, or null
  bool stream = false;
  Json echoed;  // the fields of the request that the answer repeats
};

// Throws ApiError(400) naming the field.
ResponseRequest read_response_request(Engine& engine, const Json& body);

}  // namespace edgerunner::server
