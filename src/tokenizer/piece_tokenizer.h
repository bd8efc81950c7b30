#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"
#include "tokenizer/vocabulary_tokenizer.h"

namespace edgerunner {

inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

// What tokenizers have in common whose tokens spell a space as U+2581: the way back to text, and
// what becomes of a character that is no token: the tokens of its bytes where the vocabulary has
// all of them, else the unknown token.
class PieceTokenizer : public VocabularyTokenizer {
 public:
  std::string token_bytes(TokenId token, bool special) const override;
  // Without the space that each stretch of plain text got in front.
  std::string decode(std::span<const TokenId> tokens, bool special) const final;

 protected:
  PieceTokenizer(Vocabulary vocabulary, Surround surround, bool space_prefix);

  // tokenizer.ggml.scores, one for each of `tokens`. Throws Error(invalid_file).
  static std::vector<float> read_scores(const gguf::File& file, std::size_t tokens);
  // Throws Error(unsupported) for a token so long that a hostile file could use it to make encoding
  // slow.
  static void require_length(const gguf::File& file, TokenId token, std::string_view text);

  void append_unknown(std::string_view character, std::vector<TokenId>& ids) const;
  // A run of unknown characters is one unknown token; `first` is where the stretch's ids begin.
  void fuse_unknown(std::vector<TokenId>& ids, std::size_t first) const;

  // Whether plain text after `token` is a stretch of its own.
  virtual bool starts_stretch(TokenId token) const;

  bool byte_fallback() const { return byte_fallback_; }
  bool space_prefix() const { return space_prefix_; }

 private:
  std::array<TokenId, 256> byte_tokens_{};  // kNoToken where the vocabulary lacks the byte
  bool byte_fallback_ = true;               // it lacks none
  bool space_prefix_;
};

}  // namespace edgerunner
