#include "tokenizer/wordpiece.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "edgerunner/error.h"

namespace edgerunner {
namespace {

constexpr std::size_t kLongestWord = 100;  // characters; BERT's max_input_chars_per_word
constexpr std::size_t kCasedShare = 100;   // one token in so many has a capital

bool has_capital(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

// U+2581 alone can only be a piece that continues a word.
bool begins_word(std::string_view token) {
  return token.starts_with(kSpaceMark) && token.size() > kSpaceMark.size();
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

WordPieceTokenizer::Pieces WordPieceTokenizer::read_pieces(const gguf::File& file,
                                                           const Vocabulary& vocabulary) {
  std::vector<PrefixTree::Entry> beginnings;
  std::vector<PrefixTree::Entry> continuations;
  std::size_t capitals = 0;
  for (TokenId token = 0; vocabulary.contains(token); ++token) {
    if (!is_plain(vocabulary.kind(token))) continue;
    const std::string_view text = vocabulary.text(token);
    require_length(file, token, text);
    capitals += has_capital(text) ? 1 : 0;
    if (begins_word(text)) {
      beginnings.push_back({text.substr(kSpaceMark.size()), token});
    } else {
      continuations.push_back({text, token});
    }
  }
  if (beginnings.empty()) {
    throw Error(
        ErrorCode::invalid_file,
        fmt::format("{}: tokenizer.ggml.tokens: no token of this \"bert\" vocabulary begins "
                    "with U+2581, as those that begin a word must",
                    file.name()));
  }
  const bool cased = capitals * kCasedShare >= vocabulary.size();
  return {PrefixTree(std::move(beginnings)), PrefixTree(std::move(continuations)),
          cased ? BertCase::cased : BertCase::uncased};
}

std::unique_ptr<Tokenizer> WordPieceTokenizer::load(const gguf::File& file) {
  Vocabulary vocabulary =
      Vocabulary::read(file, {.bos = "[CLS]", .eos = "[SEP]", .unknown = "[UNK]"});
  Pieces pieces = read_pieces(file, vocabulary);
  return std::unique_ptr<Tokenizer>(
      new WordPieceTokenizer(std::move(vocabulary), std::move(pieces)));
}

WordPieceTokenizer::WordPieceTokenizer(Vocabulary vocabulary, Pieces pieces)
    : PieceTokenizer(std::move(vocabulary), {.bos = true, .eos = true}, true),
      pieces_(std::move(pieces)) {
  match_special([](std::string_view text) { return text; });
}

void WordPieceTokenizer::encode_all(std::string_view text, const EncodeOptions& options,
                                    Call& call) const {
  divide(text, options, call.ids, [&](std::string_view stretch) {
    const std::string words = bert_words(stretch, pieces_.letters);
    for (std::size_t at = 0; at < words.size();) {
      const std::size_t end = std::min(words.find(' ', at), words.size());
      if (end > at) encode_word(std::string_view(words).substr(at, end - at), call);
      at = end + 1;
    }
  });
}

void WordPieceTokenizer::encode_word(std::string_view word, Call& call) const {
  if (call.cache.replay(word, call.ids)) return;
  const std::size_t first = call.ids.size();
  bool known = characters(word) <= kLongestWord;
  for (std::size_t at = 0; known && at < word.size();) {
    std::size_t longest = 0;
    TokenId token = kNoToken;
    const PrefixTree& tree = at == 0 ? pieces_.beginnings : pieces_.continuations;
    tree.match(word.substr(at), [&](std::size_t length, TokenId found) {
      longest = length;
      token = found;
    });
    known = token != kNoToken;
    if (known) call.ids.push_back(token);
    at += longest;
  }
  if (!known) {
    call.ids.resize(first);
    if (vocabulary().unknown() != kNoToken) call.ids.push_back(vocabulary().unknown());
  }
  call.cache.remember(word, call.ids, first);
}

bool WordPieceTokenizer::starts_stretch(TokenId token) const {
  return token != vocabulary().unknown() && PieceTokenizer::starts_stretch(token);
}

std::string WordPieceTokenizer::token_bytes(TokenId token, bool special) const {
  require(token);
  const std::string_view text = vocabulary().text(token);
  // An unknown token stands for a word.
  if (token == vocabulary().unknown()) return special ? fmt::format(" {}", text) : std::string();
  if (is_silent(token)) return special ? std::string(text) : std::string();
  if (starts_stretch(token) || !begins_word(text)) return std::string(text);
  // Marks that end a sentence or a part of one follow the word before them.
  const std::string_view word = text.substr(kSpaceMark.size());
  const bool closes = word == "." || word == "," || word == "?" || word == "!";
  return closes ? std::string(word) : fmt::format(" {}", word);
}

}  // namespace edgerunner
