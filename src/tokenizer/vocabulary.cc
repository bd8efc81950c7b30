#include "tokenizer/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "edgerunner/error.h"

namespace edgerunner {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kTypes = "tokenizer.ggml.token_type";

// What models call the token that ends a turn or a text. Files often name only one of several as
// EOS. They count where the vocabulary has them as control or user-defined tokens.
constexpr std::array<std::string_view, 13> kEndNames = {
    "<|eot_id|>",             // Llama 3
    "<|eom_id|>",             // Llama 3.1, before a tool's answer
    "<|end_of_text|>",        // Llama 3, Granite
    "<|im_end|>",             // ChatML: Qwen, SmolLM, ...
    "<|endoftext|>",          // GPT-2 and its descendants
    "<|end|>",                // Phi-3
    "<|return|>",             // gpt-oss
    "<end_of_turn>",          // Gemma
    "<turn|>",                // Gemma 4
    "<|end_of_turn|>",        // OpenChat, Starling
    "<|END_OF_TURN_TOKEN|>",  // Command R
    "<\xEF\xBD\x9C"
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",  // DeepSeek
    "<end_of_utterance>",                                  // SmolVLM
};

[[noreturn]] void fail(const gguf::File& file, std::string_view key, std::string_view what) {
  throw Error(ErrorCode::invalid_file, fmt::format("{}: {}: {}", file.name(), key, what));
}

std::span<const std::string_view> require_tokens(const gguf::File& file) {
  const auto tokens = file.get_strings(kTokens);
  if (!tokens) fail(file, kTokens, "the key is missing, so the file has no vocabulary");
  if (tokens->empty()) fail(file, kTokens, "the list is empty");
  if (tokens->size() > std::numeric_limits<TokenId>::max()) {
    fail(file, kTokens, "the list has more tokens than an id can count");
  }
  return *tokens;
}

}  // namespace

Vocabulary Vocabulary::read(const gguf::File& file, const SpecialNames& names) {
  Vocabulary vocabulary(file, require_tokens(file));
  vocabulary.read_kinds(file);
  vocabulary.build_index(file);
  vocabulary.read_special(file, names);
  return vocabulary;
}

Vocabulary::Vocabulary(const gguf::File& /*file*/, std::span<const std::string_view> tokens)
    : index_(tokens.size()) {
  std::size_t bytes = 0;
  for (const std::string_view token : tokens) bytes += token.size();
  texts_.reserve(tokens.size(), bytes);
  for (const std::string_view token : tokens) texts_.push_back(token);
}

void Vocabulary::read_kinds(const gguf::File& file) {
  const auto types = file.get_ints(kTypes);
  if (!types) {
    kinds_.assign(size(), TokenKind::normal);
    return;
  }
  if (types->size() != size()) {
    fail(file, kTypes, fmt::format("{} types for {} tokens", types->size(), size()));
  }
  kinds_.reserve(size());
  for (const std::int64_t type : *types) {
    if (type < 0 || type > 6) fail(file, kTypes, fmt::format("{} is not a token type", type));
    kinds_.push_back(static_cast<TokenKind>(type));
  }
}

void Vocabulary::build_index(const gguf::File& file) {
  // Padding last, so that a real token of the same text is the one that is found.
  for (const bool padding : {false, true}) {
    for (TokenId token = 0; contains(token); ++token) {
      if ((kind(token) == TokenKind::unused) != padding) continue;
      if (text(token).empty()) {
        if (padding) continue;
        fail(file, kTokens, fmt::format("token {} is empty", token));
      }
      const TokenId earlier = index_.insert(texts_, token);
      if (earlier != kNoToken && !padding) {
        fail(file, kTokens, fmt::format("tokens {} and {} are the same", earlier, token));
      }
    }
  }
}

TokenId Vocabulary::read_id(const gguf::File& file, std::string_view key) const {
  const auto id = file.get_int(key);
  // Converters write -1, or all bits of a u32, for "there is none".
  if (!id || *id == -1 || *id == std::numeric_limits<std::uint32_t>::max()) return kNoToken;
  if (*id < 0 || static_cast<std::uint64_t>(*id) >= size()) {
    fail(file, key, fmt::format("token {} is outside the vocabulary of {}", *id, size()));
  }
  return static_cast<TokenId>(*id);
}

// Of the first key that gives an id, else of the token of that name.
TokenId Vocabulary::read_id(const gguf::File& file, std::initializer_list<std::string_view> keys,
                            std::string_view name) const {
  for (const std::string_view key : keys) {
    const TokenId token = read_id(file, key);
    if (token != kNoToken) return token;
  }
  return name.empty() ? kNoToken : find(name);
}

void Vocabulary::read_special(const gguf::File& file, const SpecialNames& names) {
  // Where BERT's kind has a class and a separator token, others have BOS and EOS. (The key is
  // misspelt so in the format.)
  bos_ = read_id(file, {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.cls_token_id"}, names.bos);
  eos_ = read_id(file, {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.seperator_token_id"},
                 names.eos);
  unknown_ = read_id(file, {"tokenizer.ggml.unknown_token_id"}, names.unknown);
  add_bos_ = file.get_bool("tokenizer.ggml.add_bos_token");
  add_eos_ = file.get_bool("tokenizer.ggml.add_eos_token");
  if (add_bos_.value_or(false) && bos_ == kNoToken) {
    fail(file, "tokenizer.ggml.bos_token_id",
         "the key is missing, but tokenizer.ggml.add_bos_token asks for it");
  }
  if (add_eos_.value_or(false) && eos_ == kNoToken) {
    fail(file, "tokenizer.ggml.eos_token_id",
         "the key is missing, but tokenizer.ggml.add_eos_token asks for it");
  }

  for (const TokenId token : {eos_, read_id(file, "tokenizer.ggml.eot_token_id"),
                              read_id(file, "tokenizer.ggml.eom_token_id")}) {
    if (token != kNoToken) end_of_generation_.push_back(token);
  }
  for (const std::string_view name : kEndNames) {
    const TokenId token = find(name);
    if (token != kNoToken &&
        (kind(token) == TokenKind::control || kind(token) == TokenKind::user_defined)) {
      end_of_generation_.push_back(token);
    }
  }
  std::sort(end_of_generation_.begin(), end_of_generation_.end());
}

bool Vocabulary::is_end_of_generation(TokenId token) const {
  return std::binary_search(end_of_generation_.begin(), end_of_generation_.end(), token);
}

}  // namespace edgerunner
