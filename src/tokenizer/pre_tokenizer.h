#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/expression.h"

namespace edgerunner {

// Cuts text into the words inside which byte-pair encoding merges: one expression after another,
// each applied to the pieces that the one before has left, its matches and what lies between them
// both becoming pieces (Hugging Face's Split with the behaviour "Isolated").
class PreTokenizer {
 public:
  // By the value of tokenizer.ggml.pre; nullopt for one that isn't supported.
  static std::optional<PreTokenizer> named(std::string_view name);

  // Unicode normalisation form C comes first.
  bool normalizes() const { return normalizes_; }
  // A whole word that is a token is taken as it is, whatever the merges would make of it.
  bool ignores_merges() const { return ignores_merges_; }
  // What holds where the metadata doesn't say whether BOS is added.
  bool adds_bos() const { return adds_bos_; }

  struct Scratch {
    Expression::Matcher matcher;
    std::vector<Expression::Range> pieces;
    std::vector<Expression::Range> next;
  };
  // Leaves the pieces of `text`, valid UTF-8, in scratch.pieces, in order and without gaps.
  void split(std::string_view text, Scratch& scratch) const;

 private:
  std::vector<Expression> stages_;
  bool normalizes_ = false;
  bool ignores_merges_ = false;
  bool adds_bos_ = false;
};

// How a tokenizer.json cuts text, by its own names: the expression of a Split, "Digits" for single
// digits, "ByteLevel" for that step's own expression.
struct PublishedStages {
  std::vector<std::string> stages;
  bool normalizes = false;      // NFC
  bool ignores_merges = false;  // a word that is a token is taken whole
};

// The name under which tokenizer.ggml.pre has them; empty where there is none.
std::optional<std::string_view> pre_tokenizer_name(const PublishedStages& published);

}  // namespace edgerunner
