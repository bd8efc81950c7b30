#pragma once

#include <memory>

#include "server/engine.h"
#include "server/exchange.h"

namespace edgerunner::server {

// POST /v1/responses: text and calls of functions, whole or as a stream. Nothing is stored.
void handle_response(Engine& engine, const std::shared_ptr<Exchange>& exchange);

}  // namespace edgerunner::server
