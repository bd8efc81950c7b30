#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edgerunner/tokenizer.h"
#include "tokenizer/merger.h"
#include "tokenizer/special_matcher.h"
#include "tokenizer/vocabulary.h"
#include "tokenizer/word_cache.h"

namespace edgerunner {

// What every tokenizer of a GGUF vocabulary has in common: special tokens are found first, then
// each stretch of plain text between them is encoded by the derived class.
class VocabularyTokenizer : public Tokenizer {
 public:
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options) const final;

  std::size_t size() const final { return vocabulary_.size(); }
  TokenId bos() const final { return vocabulary_.bos(); }
  TokenId eos() const final { return vocabulary_.eos(); }
  bool adds_bos() const final { return adds_bos_; }
  bool adds_eos() const final { return adds_eos_; }
  bool is_end_of_generation(TokenId token) const final {
    return vocabulary_.is_end_of_generation(token);
  }
  bool is_control(TokenId token) const final {
    return vocabulary_.contains(token) && vocabulary_.kind(token) == TokenKind::control;
  }
  TokenId find(std::string_view text) const final { return vocabulary_.find(text); }

 protected:
  // What encode() puts around a text where the metadata doesn't say.
  struct Surround {
    bool bos = false;
    bool eos = false;
  };
  VocabularyTokenizer(Vocabulary vocabulary, Surround surround);

  // Makes the tokens that are matched as a whole known, each spelt as `spelling` returns it.
  template <typename Spelling>
  void match_special(Spelling spelling) {
    for (TokenId token = 0; vocabulary_.contains(token); ++token) {
      const TokenKind kind = vocabulary_.kind(token);
      const bool user_defined = kind == TokenKind::user_defined;
      if (user_defined) user_defined_.add(spelling(vocabulary_.text(token)), token);
      if (user_defined || kind == TokenKind::control || kind == TokenKind::unknown) {
        special_.add(spelling(vocabulary_.text(token)), token);
      }
    }
    user_defined_.finish();
    special_.finish();
  }

  // What one call of encode writes to.
  struct Call {
    explicit Call(std::size_t text_bytes) : cache(text_bytes) { ids.reserve(text_bytes / 4 + 2); }
    std::vector<TokenId> ids;
    WordCache cache;
    Merger::Scratch merging;
    std::vector<TokenId> symbols;
  };

  // Appends the ids of `text`, without BOS and EOS.
  virtual void encode_all(std::string_view text, const EncodeOptions& options,
                          Call& call) const = 0;

  // Appends the special tokens that the options admit to `ids`, and hands each stretch of plain
  // text between them, none of them empty, to `plain(stretch)`.
  template <typename Plain>
  void divide(std::string_view text, const EncodeOptions& options, std::vector<TokenId>& ids,
              Plain plain) const {
    const SpecialMatcher& matcher = options.parse_special ? special_ : user_defined_;
    std::size_t at = 0;
    while (at < text.size()) {
      auto match = matcher.find(text, at);
      while (match && covers(*match, options.plain)) match = matcher.find(text, match->begin + 1);
      const std::size_t end = match ? match->begin : text.size();
      if (end > at) plain(text.substr(at, end - at));
      if (!match) break;
      ids.push_back(match->token);
      at = match->end;
    }
  }

  // Throws Error(invalid_argument) for an id outside the vocabulary.
  void require(TokenId token) const;
  // Tokens whose text is left out unless special ones are asked for.
  bool is_silent(TokenId token) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  static bool covers(const SpecialMatcher::Match& match, std::span<const std::size_t> offsets) {
    const auto next = std::lower_bound(offsets.begin(), offsets.end(), match.begin);
    return next != offsets.end() && *next < match.end;
  }

  Vocabulary vocabulary_;
  SpecialMatcher user_defined_;  // always matched
  SpecialMatcher special_;       // with control and unknown tokens
  bool adds_bos_;
  bool adds_eos_;
};

}  // namespace edgerunner
