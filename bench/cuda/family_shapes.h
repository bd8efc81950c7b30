#pragma once

#include <string_view>

#include "arch/decoder.h"
#include "tensor/element_type.h"

namespace edgerunner {

// Beside arch/shape.h's shapes two of families beyond llama, without data: "qwen3-30b-a3b" (128
// experts, of which a row has 8) and "gemma3-1b" (heads of 256, windows, GeGLU, norms around
// blocks). Throws as shape_decoder does.
Decoder bench_decoder(std::string_view name, ElementType type);

}  // namespace edgerunner
