#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "edgerunner/tokenizer.h"
#include "support/file_builder.h"
#include "tokenizer/load.h"

namespace edgerunner::test {

// The metadata of a tokenizer, to be made into a GGUF file in memory; lies included.
struct VocabularyFile {
  std::optional<std::string> model;
  std::optional<std::string> pre;
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;
  std::optional<std::vector<float>> scores;
  std::optional<std::vector<std::string>> merges;
  std::optional<std::vector<std::uint8_t>> charsmap;
  std::vector<std::pair<std::string, std::uint32_t>> numbers;  // tokenizer.ggml.KEY
  std::vector<std::pair<std::string, bool>> flags;             // tokenizer.ggml.KEY

  VocabularyFile& add(std::string token, int type = 1, float score = 0) {
    tokens.push_back(std::move(token));
    types.push_back(type);
    if (scores) scores->push_back(score);
    return *this;
  }
  TokenId id(const std::string& token) const;

  FileBuilder build() const;
  std::unique_ptr<Tokenizer> load() const;
};

// Types of tokens, as the format numbers them.
inline constexpr int kUnknown = 2;
inline constexpr int kControl = 3;
inline constexpr int kUserDefined = 4;
inline constexpr int kUnused = 5;
inline constexpr int kByte = 6;

// A byte-level vocabulary of the 256 bytes (ids 0 to 255), then what each merge makes. A merge is
// "left right" in GPT-2's alphabet.
VocabularyFile byte_level(const std::string& pre, const std::vector<std::string>& merges);

// <unk>, <s>, </s>, the 256 byte tokens (ids 3 to 258), then the pieces, each of a lower score than
// the one before.
VocabularyFile sentencepiece(const std::vector<std::string>& pieces);

// <pad>, </s>, <unk>, then the pieces with their scores, for the unigram model.
VocabularyFile unigram(const std::vector<std::pair<std::string, float>>& pieces);

// [PAD], [UNK], [CLS], [SEP], then the pieces as they stand, for WordPiece.
VocabularyFile wordpiece(const std::vector<std::string>& pieces);

}  // namespace edgerunner::test
