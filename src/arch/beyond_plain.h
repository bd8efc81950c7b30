#pragma once

#include <string_view>

#include "arch/decoder.h"

namespace edgerunner {

// What a decoder asks for beyond the plain one (norms before each block, SwiGLU, one RoPE, no caps
// and no multipliers: the llama, qwen2 and qwen3 families), in words, or empty. For a backend that
// runs plain decoders alone and must refuse the others by name.
std::string_view beyond_plain(const Decoder& decoder);

// Throws Error(unsupported) naming the family and what it needs that `backend` lacks.
void require_plain(const Decoder& decoder, std::string_view backend);

}  // namespace edgerunner
