#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"
#include "tokenizer/pair_filter.h"
#include "tokenizer/piece_tokenizer.h"

namespace edgerunner {

// SentencePiece's byte-pair encoding (tokenizer.ggml.model "llama"): spaces are written U+2581,
// each stretch of plain text gets one in front (unless tokenizer.ggml.add_space_prefix is false),
// characters are merged in the order of the resulting tokens' scores, and a character that is no
// token becomes the tokens of its bytes. Bytes that aren't valid UTF-8 become byte tokens too.
class SentencePieceTokenizer final : public PieceTokenizer {
 public:
  static std::unique_ptr<Tokenizer> load(const gguf::File& file);

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

  Merger merger_;
  PairFilter joints_;
};

}  // namespace edgerunner
