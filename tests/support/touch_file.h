#pragma once

#include <cstdint>

#include "gguf/file.h"

namespace edgerunner::test {

// Calls everything that a File offers, on every key and tensor, and reads every byte that it hands
// out. Ends the process where the File breaks a promise of its header; other errors than
// edgerunner::Error pass through. The sum depends on what was read, so that nothing is optimised
// away.
std::uint64_t touch(const gguf::File& file);

}  // namespace edgerunner::test
