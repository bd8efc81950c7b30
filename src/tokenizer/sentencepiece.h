#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"
#include "tokenizer/pair_filter.h"
#include "tokenizer/vocabulary_tokenizer.h"

namespace edgerunner {

// SentencePiece's byte-pair encoding (tokenizer.ggml.model "llama"): spaces are written U+2581,
// each stretch of plain text gets one in front (unless tokenizer.ggml.add_space_prefix is false),
// characters are merged in the order of the resulting tokens' scores, and a character that is no
// token becomes the tokens of its bytes. Bytes that aren't valid UTF-8 become byte tokens too.
class SentencePieceTokenizer final : public VocabularyTokenizer {
 public:
  static std::unique_ptr<Tokenizer> load(const gguf::File& file);

  std::string token_bytes(TokenId token, bool special) const override;
  std::string decode(std::span<const TokenId> tokens, bool special) const override;

 private:
  // What the vocabulary's scores say: which pairs merge in which order, and across which pairs of
  // characters some merge reaches. Where none does, text can be cut without changing its tokens.
  struct Merges;
  static Merges derive_merges(const gguf::File& file, const Vocabulary& vocabulary,
                              std::span<const float> scores);

  SentencePieceTokenizer(Vocabulary vocabulary, Merges merges, bool space_prefix);

  void encode_all(std::string_view text, const EncodeOptions& options, Call& call) const override;
  void encode_plain(std::string_view text, Call& call) const;
  void encode_chunk(std::string_view text, Call& call) const;
  void append_character(std::string_view character, std::vector<TokenId>& symbols) const;
  // A run of unknown characters is one unknown token; `first` is where the stretch's ids begin.
  void fuse_unknown(std::vector<TokenId>& ids, std::size_t first) const;
  bool starts_stretch(TokenId token) const;

  Merger merger_;
  PairFilter joints_;
  std::array<TokenId, 256> byte_tokens_{};  // kNoToken where the vocabulary lacks the byte
  bool byte_fallback_ = true;               // it lacks none
  bool space_prefix_;
};

}  // namespace edgerunner
