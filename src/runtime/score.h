#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "backend/executor.h"

namespace edgerunner {

// Runs `tokens` as one sequence from its beginning, in batches as large as the executor takes, and
// hands the logits of `positions` (ascending, below tokens.size()) to `visit`, [vocab_size] each,
// one position after another. Uses pages 0, 1, ... of the executor's cache and reuses nothing.
// Throws Error(invalid_argument) for a position out of range or out of order, Error(context_full)
// where the cache has too few pages. `adapters` apply, or null.
using ScoreVisitor = std::function<void(std::uint32_t position, std::span<const float> logits)>;
void score(Executor& executor, std::uint32_t vocab_size, std::span<const TokenId> tokens,
           std::span<const std::uint32_t> positions, const ScoreVisitor& visit,
           const AdapterSet* adapters = nullptr);

}  // namespace edgerunner
