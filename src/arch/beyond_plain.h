#pragma once

#include <string_view>

#include "arch/decoder.h"

namespace edgerunner {

// What a decoder asks for beyond the plain one (norms before each block, SwiGLU, one RoPE, no caps
// and no multipliers: llama, qwen2, qwen3 and phi3), in words, or empty. For kernels that
// know plain decoders alone.
std::string_view beyond_plain(const Decoder& decoder);

}  // namespace edgerunner
