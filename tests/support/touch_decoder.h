#pragma once

#include <cstdint>

#include "gguf/file.h"

namespace edgerunner::test {

// Reads the decoder of a file and every weight of it. Ends the process where spec and weights don't
// fit each other; throws what read_decoder() throws.
std::uint64_t touch_decoder(const gguf::File& file);

}  // namespace edgerunner::test
