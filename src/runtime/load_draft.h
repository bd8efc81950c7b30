#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "edgerunner/model.h"
#include "gguf/file.h"
#include "runtime/drafter.h"

namespace edgerunner {

// The draft model that a model's options ask for, or null. It is loaded here, and what it takes is
// subtracted from `available` bytes. Throws Error(invalid_argument) for options that
// contradict each other and for a draft model of another vocabulary than `target`'s,
// Error(unsupported) on a backend whose passes of several rows round otherwise than those of one,
// and what loading throws.
std::unique_ptr<Drafter> make_drafter(const ModelOptions& options, const gguf::File& target,
                                      std::optional<std::uint64_t>& available);

}  // namespace edgerunner
