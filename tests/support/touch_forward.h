#pragma once

#include "gguf/file.h"

namespace edgerunner::test {

// Reads the decoder of a file and runs three tokens on each backend that needs no device, in both
// precisions. What the logits are is no matter: weights may be anything. Throws what read_decoder()
// throws.
void touch_forward(const gguf::File& file);

}  // namespace edgerunner::test
