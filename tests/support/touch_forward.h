#pragma once

#include "arch/decoder.h"
#include "gguf/file.h"

namespace edgerunner::test {

// Reads the decoder of a file and runs three tokens on each backend that needs no device, in both
// precisions. What the logits are is no matter: weights may be anything. Throws what read_decoder()
// throws.
void touch_forward(const gguf::File& file);

// Reads a file as a LoRA adapter of a decoder and runs the same with it. Throws what LoraAdapter
// throws.
void touch_adapter(gguf::File file, const Decoder& decoder);

}  // namespace edgerunner::test
