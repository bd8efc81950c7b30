#pragma once

#include <string_view>

#include "arch/decoder.h"

namespace edgerunner {

// What a decoder asks for beyond the plain one (norms before each block, SwiGLU, one RoPE, no caps
// and no multipliers: the llama, qwen2 and qwen3 families), in words, or empty. For kernels that
// know plain decoders alone.
std::string_view beyond_plain(const Decoder& decoder);

}  // namespace edgerunner
