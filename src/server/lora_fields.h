#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "edgerunner/adapter.h"
#include "server/engine.h"
#include "server/exchange.h"
#include "server/fields.h"

namespace edgerunner::server {

// lora: [{"id", "scale"}, ...], the adapters that a request wants, as llama.cpp's server has it;
// those not listed don't apply. Absent: all, as they were loaded.
std::optional<std::vector<AdapterScale>> read_lora(const Fields& fields, Engine& engine);

// GET /lora-adapters: [{"id", "path", "scale", ...}, ...], those that were loaded.
void handle_lora_adapters(Engine& engine, const std::shared_ptr<Exchange>& exchange);

}  // namespace edgerunner::server
