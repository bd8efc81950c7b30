#pragma once

#include <memory>

#include "server/engine.h"
#include "server/exchange.h"

namespace edgerunner::server {

// POST /v1/chat/completions.
void handle_chat_completion(Engine& engine, const std::shared_ptr<Exchange>& exchange);

}  // namespace edgerunner::server
