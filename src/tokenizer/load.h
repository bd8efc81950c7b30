#pragma once

#include <memory>

#include "edgerunner/tokenizer.h"
#include "gguf/file.h"

namespace edgerunner {

// The tokenizer that a file's metadata describes; copies what it needs, so the file may go.
// Throws Error(unsupported) naming the model or pre-tokenizer, Error(invalid_file) naming the key.
std::unique_ptr<Tokenizer> load_tokenizer(const gguf::File& file);

}  // namespace edgerunner
