#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"
#include "tokenizer/piece_tokenizer.h"
#include "tokenizer/prefix_tree.h"
#include "tokenizer/unigram_normalizer.h"

namespace edgerunner {

// SentencePiece's unigram model (tokenizer.ggml.model "t5"): of all ways to write a stretch of
// normalised text as tokens the one whose scores have the highest sum, the first found of equal
// ones. A character that is no token costs more than the least likely one.
class UnigramTokenizer final : public PieceTokenizer {
 public:
  static std::unique_ptr<Tokenizer> load(const gguf::File& file);

 private:
  // The best way found so far to write a text up to some place.
  struct Way {
    double score;
    std::uint32_t begin;  // of the last token, counted from where the search began
    TokenId token;        // kNoToken: an unknown character
  };

  static PrefixTree plain_tokens(const gguf::File& file, const Vocabulary& vocabulary);

  UnigramTokenizer(Vocabulary vocabulary, std::vector<float> scores, PrefixTree tree,
                   UnigramNormalizer normalizer);

  void encode_all(std::string_view text, const EncodeOptions& options, Call& call) const override;
  // Appends the ids of the front of `text`, which is not empty, up to the first place that no token
  // reaches across: what follows has no part in how it is best written. Returns its length.
  std::size_t encode_front(std::string_view text, std::vector<Way>& ways,
                           std::vector<TokenId>& ids) const;

  std::vector<float> scores_;
  PrefixTree tree_;
  UnigramNormalizer normalizer_;
  double unknown_score_;
};

}  // namespace edgerunner
