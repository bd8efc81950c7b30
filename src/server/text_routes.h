#pragma once

#include <memory>

#include "server/engine.h"
#include "server/exchange.h"

namespace edgerunner::server {

// GET /health: 200, or 503 while the model is loading.
void handle_health(Engine& engine, const std::shared_ptr<Exchange>& exchange);
// GET /v1/models: the one that is served.
void handle_models(Engine& engine, const std::shared_ptr<Exchange>& exchange);
// GET /v1/models/ID, of the one that is served.
void handle_model(Engine& engine, const std::shared_ptr<Exchange>& exchange);
// GET /metrics.
void handle_metrics(Engine& engine, const std::shared_ptr<Exchange>& exchange);
// POST /tokenize: {"content" or "text", "add_special", "parse_special"} -> {"tokens"}.
void handle_tokenize(Engine& engine, const std::shared_ptr<Exchange>& exchange);
// POST /detokenize: {"tokens"} -> {"content"}.
void handle_detokenize(Engine& engine, const std::shared_ptr<Exchange>& exchange);

}  // namespace edgerunner::server
