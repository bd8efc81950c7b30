#pragma once

#include <cstdint>

#include "convert/model_folder.h"
#include "gguf/writer.h"

namespace edgerunner::convert {

// Sets the tokenizer's keys from tokenizer.json (byte-level BPE, or SentencePiece's BPE with
// fallback to bytes) and tokenizer_config.json: tokens and their kinds, padded to the `vocab` rows
// of the embedding, merges or scores, the pre-tokenizer, special ids, and chat templates (also from
// chat_template.jinja). Throws Error(invalid_file) naming file and key; Error(unsupported) for
// another kind of tokenizer, and for a normaliser or pre-tokenizer that GGUF has no name for.
void add_tokenizer(const ModelFolder& folder, std::uint32_t vocab, gguf::Writer& writer);

}  // namespace edgerunner::convert
