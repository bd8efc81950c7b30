#pragma once

#include <cstdint>

#include "gguf/file.h"

namespace edgerunner::test {

// Loads the tokenizer of a file and calls everything that it offers, on awkward texts and on every
// id. Ends the process where it breaks a promise of its header; throws what load_tokenizer()
// throws.
std::uint64_t touch_tokenizer(const gguf::File& file);

}  // namespace edgerunner::test
