#pragma once

#include <string>
#include <vector>

#include "convert/model_folder.h"
#include "gguf/writer.h"
#include "tokenizer/vocabulary.h"

namespace edgerunner::convert {

// A vocabulary by id.
struct Tokens {
  std::vector<std::string> texts;
  std::vector<TokenKind> kinds;
};

// Sets the ids of special tokens, whether BOS and EOS are added, and the chat templates, from
// tokenizer_config.json, config.json, generation_config.json and tokenizer.json's post-processor.
void add_special_tokens(const ModelFolder& folder, const Config& tokenizer, const Tokens& tokens,
                        gguf::Writer& writer);

}  // namespace edgerunner::convert
