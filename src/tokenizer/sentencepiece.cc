#include "tokenizer/sentencepiece.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "edgerunner/error.h"
#include "tokenizer/utf8.h"

namespace edgerunner {
namespace {

std::string with_marks(std::string_view text) {
  std::string result;
  result.reserve(text.size() + text.size() / 2);
  for (const char c : text) {
    if (c == ' ') {
      result += kSpaceMark;
    } else {
      result += c;
    }
  }
  return result;
}

// Where bytes of a text stand once it has its marks.
std::vector<std::size_t> marked_offsets(std::string_view text,
                                        std::span<const std::size_t> offsets) {
  std::vector<std::size_t> moved;
  moved.reserve(offsets.size());
  std::size_t at = 0;
  std::size_t added = 0;
  for (const std::size_t offset : offsets) {
    for (; at < std::min(offset, text.size()); ++at)
      added += text[at] == ' ' ? kSpaceMark.size() - 1 : 0;
    moved.push_back(offset + added);
  }
  return moved;
}

}  // namespace

struct SentencePieceTokenizer::Merges {
  PairTable pairs;
  PairFilter joints;
};

SentencePieceTokenizer::Merges SentencePieceTokenizer::derive_merges(
    const gguf::File& file, const Vocabulary& vocabulary, std::span<const float> scores) {
  struct Split {
    TokenId left;
    TokenId right;
    TokenId result;
    char32_t last;   // of the left token
    char32_t first;  // of the right one
  };
  // SentencePiece merges the pair whose result has the highest score, the leftmost of equal ones.
  // Where a token can come about in several ways, Hugging Face's conversion tries the left token of
  // the lowest id first; so do we.
  std::vector<TokenId> by_score(vocabulary.size());
  std::iota(by_score.begin(), by_score.end(), 0);
  std::stable_sort(by_score.begin(), by_score.end(), [&](TokenId a, TokenId b) {
    return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
  });
  const auto plain = [&](std::string_view text) {
    const TokenId token = vocabulary.find(text);
    return token != kNoToken && is_plain(vocabulary.kind(token)) ? token : kNoToken;
  };

  std::vector<Split> splits;
  splits.reserve(vocabulary.size() * 2);
  for (const TokenId token : by_score) {
    if (!is_plain(vocabulary.kind(token))) continue;
    const std::string_view text = vocabulary.text(token);
    require_length(file, token, text);                     // every way to split it is tried
    if (valid_utf8_prefix(text) != text.size()) continue;  // no characters make it up
    const std::size_t begin = splits.size();
    char32_t last = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = first_utf8_unit(text.substr(at)).length;
      const char32_t code_point = utf8_code_point(&text[at], length);
      if (at > 0) {
        const TokenId left = plain(text.substr(0, at));
        const TokenId right = left == kNoToken ? kNoToken : plain(text.substr(at));
        if (right != kNoToken) splits.push_back({left, right, token, last, code_point});
      }
      last = code_point;
      at += length;
    }
    std::sort(splits.begin() + static_cast<std::ptrdiff_t>(begin), splits.end(),
              [](const Split& a, const Split& b) {
                return a.left != b.left ? a.left < b.left : a.right < b.right;
              });
  }

  Merges merges{PairTable(splits.size()), PairFilter(splits.size())};
  for (std::size_t rank = 0; rank < splits.size(); ++rank) {
    const Split& split = splits[rank];
    merges.pairs.insert(split.left, split.right, {static_cast<std::uint32_t>(rank), split.result});
    merges.joints.insert(split.last, split.first);
  }
  return merges;
}

std::unique_ptr<Tokenizer> SentencePieceTokenizer::load(const gguf::File& file) {
  Vocabulary vocabulary = Vocabulary::read(file);
  Merges merges = derive_merges(file, vocabulary, read_scores(file, vocabulary.size()));
  const bool space_prefix = file.get_bool("tokenizer.ggml.add_space_prefix").value_or(true);
  return std::unique_ptr<Tokenizer>(
      new SentencePieceTokenizer(std::move(vocabulary), std::move(merges), space_prefix));
}

SentencePieceTokenizer::SentencePieceTokenizer(Vocabulary vocabulary, Merges merges,
                                               bool space_prefix)
    : PieceTokenizer(std::move(vocabulary), {.bos = true}, space_prefix),
      merger_(std::move(merges.pairs)),
      joints_(std::move(merges.joints)) {
  match_special(with_marks);
}

void SentencePieceTokenizer::encode_all(std::string_view text, const EncodeOptions& options,
                                        Call& call) const {
  // A space and U+2581 mean the same from here on, in the special tokens too.
  const std::string marked = with_marks(text);
  const std::vector<std::size_t> plain = marked_offsets(text, options.plain);
  EncodeOptions marked_options = options;
  marked_options.plain = plain;
  std::string prefixed;
  divide(marked, marked_options, call.ids, [&](std::string_view stretch) {
    if (space_prefix()) {
      prefixed.assign(kSpaceMark).append(stretch);
      stretch = prefixed;
    }
    encode_plain(stretch, call);
  });
}

void SentencePieceTokenizer::encode_plain(std::string_view text, Call& call) const {
  const std::size_t first = call.ids.size();
  std::size_t begin = 0;
  char32_t last = 0;
  bool whole = false;  // whether the unit before is a character
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Unit unit = first_utf8_unit(text.substr(at));
    const bool character = unit.kind == Utf8Unit::Kind::character;
    const char32_t code_point = character ? utf8_code_point(&text[at], unit.length) : 0;
    if (at > begin && !(character && whole && joints_.may_contain(last, code_point))) {
      encode_chunk(text.substr(begin, at - begin), call);
      begin = at;
    }
    last = code_point;
    whole = character;
    at += unit.length;
  }
  encode_chunk(text.substr(begin), call);
  fuse_unknown(call.ids, first);
}

void SentencePieceTokenizer::encode_chunk(std::string_view text, Call& call) const {
  // Fusing unknown tokens moves ids, which the cache can't know.
  if (byte_fallback() && call.cache.replay(text, call.ids)) return;
  const std::size_t first = call.ids.size();
  call.symbols.clear();
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Unit unit = first_utf8_unit(text.substr(at));
    append_character(text.substr(at, unit.length), call.symbols);
    at += unit.length;
  }
  merger_.merge(call.symbols, call.merging, call.ids);
  if (byte_fallback()) call.cache.remember(text, call.ids, first);
}

void SentencePieceTokenizer::append_character(std::string_view character,
                                              std::vector<TokenId>& symbols) const {
  const TokenId token = find(character);
  if (token != kNoToken && is_plain(vocabulary().kind(token))) {
    symbols.push_back(token);
  } else {
    append_unknown(character, symbols);
  }
}

}  // namespace edgerunner
