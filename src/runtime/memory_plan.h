#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "backend/executor.h"
#include "edgerunner/model.h"

namespace edgerunner {

// What a model will take, settled before anything is allocated.
struct MemoryPlan {
  std::uint32_t context = 0;
  ExecutorOptions executor;
  std::uint64_t weights_bytes = 0;
  std::uint64_t cache_bytes = 0;
  std::uint64_t scratch_bytes = 0;  // the executor's and the scheduler's logits
};

struct MemoryPlanInput {
  std::uint64_t weights_bytes = 0;    // of the file
  std::uint32_t trained_context = 0;  // DecoderSpec::context_length
  std::uint32_t vocab_size = 0;
  std::uint32_t prefill_chunk = 512;              // where the options don't say: Backend's
  std::uint32_t adapter_floats = 0;               // ExecutorOptions::adapter_floats
  std::vector<const LoraAdapter*> adapters = {};  // ExecutorOptions::adapters
  std::optional<std::uint64_t> available;         // bytes; nullopt where the system doesn't say
  std::function<MemoryNeed(const ExecutorOptions&)> need;  // the backend's
};

// Chooses the context and the pages of the KV cache.
//
// The cache holds one whole context, and as much again (at least 8 pages for each further
// sequence) for the other sequences and for prefixes worth keeping. That second part is given up
// where memory is short. Pages that were never written take no memory.
//
// A prefill_chunk of 0 becomes the backend's, halved (to no less than 512) while scratch would take
// more than a sixteenth of the memory, or the context would not fit. A context of 0 becomes the
// trained one, at most kDefaultContext and what fits. Throws Error(out_of_memory) with the sum and
// the context that would fit, Error(invalid_argument) naming an option that is out of range.
MemoryPlan plan_memory(const ModelOptions& options, const MemoryPlanInput& input);

// What options.context, which must be given, takes without that second part, whether it fits or
// not.
MemoryPlan plan_context(const ModelOptions& options, const MemoryPlanInput& input);

inline constexpr std::uint32_t kDefaultContext = 8192;

// A prefill_chunk that nobody asked for: `usual`, halved while it doesn't fit, to no less than 512.
std::uint32_t fitting_chunk(std::uint32_t usual, const std::function<bool(std::uint32_t)>& fits);

}  // namespace edgerunner
