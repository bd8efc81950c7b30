#pragma once

#include <memory>

#include "server/engine.h"
#include "server/exchange.h"

namespace edgerunner::server {

// POST /v1/embeddings: {"input", "encoding_format", "dimensions", "pooling": "mean" or "last"}.
void handle_embeddings(Engine& engine, const std::shared_ptr<Exchange>& exchange);

}  // namespace edgerunner::server
