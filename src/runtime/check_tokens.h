#pragma once

#include <cstdint>
#include <span>

#include "edgerunner/types.h"

namespace edgerunner {

// Throws Error(invalid_argument) where there are no tokens, or one is outside the vocabulary.
void check_tokens(std::span<const TokenId> tokens, std::uint32_t vocab_size);

// The same, and Error(context_full) where there are more than the context holds.
void check_sequence(std::span<const TokenId> tokens, std::uint32_t vocab_size,
                    std::uint32_t context);

}  // namespace edgerunner
