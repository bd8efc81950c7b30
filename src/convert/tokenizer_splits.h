#pragma once

#include <string>

#include "convert/config.h"

namespace edgerunner::convert {

// How a tokenizer.json cuts text into words, as GGUF says it.
struct Splits {
  bool byte_level = false;    // else SentencePiece's
  std::string pre;            // tokenizer.ggml.pre
  bool space_prefix = false;  // a space in front of each stretch (SentencePiece)
};

// Throws Error(unsupported) that names the normaliser or pre-tokenizer that GGUF has no name for.
Splits read_splits(const Config& tokenizer);

}  // namespace edgerunner::convert
