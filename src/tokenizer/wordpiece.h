#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "gguf/file.h"
#include "tokenizer/bert_words.h"
#include "tokenizer/piece_tokenizer.h"
#include "tokenizer/prefix_tree.h"

namespace edgerunner {

// BERT's WordPiece (tokenizer.ggml.model "bert"): a word becomes the longest token that it begins
// with, the rest of it likewise, and one unknown token where that leads nowhere or the word has
// more than 100 characters. In GGUF a token that begins a word is spelt with U+2581 in front, and
// one that continues it without BERT's "##". [CLS] and [SEP] serve as BOS and EOS.
//
// GGUF doesn't say whether a vocabulary is cased: it is where one token in a hundred has a capital.
class WordPieceTokenizer final : public PieceTokenizer {
 public:
  static std::unique_ptr<Tokenizer> load(const gguf::File& file);

  std::string token_bytes(TokenId token, bool special) const override;

 private:
  struct Pieces {
    PrefixTree beginnings;  // without U+2581
    PrefixTree continuations;
    BertCase letters;
  };
  static Pieces read_pieces(const gguf::File& file, const Vocabulary& vocabulary);

  WordPieceTokenizer(Vocabulary vocabulary, Pieces pieces);

  void encode_all(std::string_view text, const EncodeOptions& options, Call& call) const override;
  void encode_word(std::string_view word, Call& call) const;
  bool starts_stretch(TokenId token) const override;

  Pieces pieces_;
};

}  // namespace edgerunner
