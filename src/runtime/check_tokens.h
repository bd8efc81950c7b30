#pragma once

#include <cstdint>
#include <span>

#include "edgerunner/types.h"

namespace edgerunner {

// Throws Error(invalid_argument) where there are no tokens, or one is outside the vocabulary.
void check_tokens(std::span<const TokenId> tokens, std::uint32_t vocab_size);

}  // namespace edgerunner
