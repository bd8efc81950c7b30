#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/vocabulary_tokenizer.h"

namespace edgerunner {

// Byte-level byte-pair encoding (tokenizer.ggml.model "gpt2"): the text is cut into words by the
// pre-tokenizer's expressions, the bytes of a word are merged by rank.
//
// Bytes that aren't valid UTF-8 stand outside the expressions' world: each becomes the token of
// that byte, and the text before and after is encoded as if it ended and began there. So
// decode(encode(x)) gives x back for any bytes (after normalisation, where the model has one).
class ByteBpeTokenizer final : public VocabularyTokenizer {
 public:
  static std::unique_ptr<Tokenizer> load(const gguf::File& file);

  std::string token_bytes(TokenId token, bool special) const override;
  std::string decode(std::span<const TokenId> tokens, bool special) const override;

 private:
  ByteBpeTokenizer(Vocabulary vocabulary, PreTokenizer pre_tokenizer, PairTable merges);

  void encode_all(std::string_view text, const EncodeOptions& options, Call& call) const override;
  void encode_plain(std::string_view text, PreTokenizer::Scratch& scratch, Call& call) const;
  void encode_word(std::string_view word, Call& call) const;

  PreTokenizer pre_tokenizer_;
  Merger merger_;
  std::array<TokenId, 256> byte_tokens_{};  // kNoToken where the vocabulary lacks the byte
};

}  // namespace edgerunner
