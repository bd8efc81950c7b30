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

constexpr std::string_view kScores = "tokenizer.ggml.scores";
constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581

// SentencePiece's own limit is 16 characters unless it is raised; every way to split a token is
// tried, so the cost grows with the square of this.
constexpr std::size_t kLongestToken = 1024;

std::string with_marks(std::string_view text) {
  std::string result;
  result.reserve(text.size() + text.size() / 2);
  for (const char c : text) {
    if (c == ' ') {
      result += kSpace;
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
      added += text[at] == ' ' ? kSpace.size() - 1 : 0;
    moved.push_back(offset + added);
  }
  return moved;
}

std::string with_spaces(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t mark = std::min(text.find(kSpace, at), text.size());
    result += text.substr(at, mark - at);
    if (mark < text.size()) result += ' ';
    at = mark + kSpace.size();
  }
  return result;
}

std::vector<float> read_scores(const gguf::File& file, std::size_t tokens) {
  auto scores = file.get_floats(kScores);
  const auto fail = [&](std::string_view what) {
    throw Error(ErrorCode::invalid_file, fmt::format("{}: {}: {}", file.name(), kScores, what));
  };
  if (!scores) fail("the key is missing, but tokenizer.ggml.model is llama");
  if (scores->size() != tokens)
    fail(fmt::format("{} scores for {} tokens", scores->size(), tokens));
  if (std::any_of(scores->begin(), scores->end(), [](float score) { return std::isnan(score); })) {
    fail("a score is not a number");
  }
  return std::move(*scores);
}

bool is_plain(TokenKind kind) { return kind == TokenKind::normal || kind == TokenKind::undefined; }

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
    if (text.size() > kLongestToken) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("{}: tokenizer.ggml.tokens: token {} has {} bytes; the limit is {}",
                              file.name(), token, text.size(), kLongestToken));
    }
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
    : VocabularyTokenizer(std::move(vocabulary), true),
      merger_(std::move(merges.pairs)),
      joints_(std::move(merges.joints)),
      space_prefix_(space_prefix) {
  match_special(with_marks);
  for (unsigned byte = 0; byte < 256; ++byte) {
    byte_tokens_[byte] = find(fmt::format("<0x{:02X}>", byte));
    if (byte_tokens_[byte] == kNoToken) byte_fallback_ = false;
  }
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
    if (space_prefix_) {
      prefixed.assign(kSpace).append(stretch);
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
  if (!byte_fallback_) fuse_unknown(call.ids, first);
}

void SentencePieceTokenizer::fuse_unknown(std::vector<TokenId>& ids, std::size_t first) const {
  const auto both_unknown = [&](TokenId a, TokenId b) {
    return a == b && a == vocabulary().unknown();
  };
  ids.erase(std::unique(ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end(), both_unknown),
            ids.end());
}

void SentencePieceTokenizer::encode_chunk(std::string_view text, Call& call) const {
  // Fusing unknown tokens moves ids, which the cache can't know.
  if (byte_fallback_ && call.cache.replay(text, call.ids)) return;
  const std::size_t first = call.ids.size();
  call.symbols.clear();
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Unit unit = first_utf8_unit(text.substr(at));
    append_character(text.substr(at, unit.length), call.symbols);
    at += unit.length;
  }
  merger_.merge(call.symbols, call.merging, call.ids);
  if (byte_fallback_) call.cache.remember(text, call.ids, first);
}

void SentencePieceTokenizer::append_character(std::string_view character,
                                              std::vector<TokenId>& symbols) const {
  const TokenId token = find(character);
  if (token != kNoToken && is_plain(vocabulary().kind(token))) {
    symbols.push_back(token);
  } else if (byte_fallback_) {
    for (const char byte : character) {
      symbols.push_back(byte_tokens_[static_cast<std::uint8_t>(byte)]);
    }
  } else if (vocabulary().unknown() != kNoToken) {
    symbols.push_back(vocabulary().unknown());
  }
}

bool SentencePieceTokenizer::starts_stretch(TokenId token) const {
  const TokenKind kind = vocabulary().kind(token);
  // With byte fallback no character is unknown: such a token was written as itself.
  return kind == TokenKind::control || kind == TokenKind::user_defined ||
         (kind == TokenKind::unknown && byte_fallback_);
}

std::string SentencePieceTokenizer::token_bytes(TokenId token, bool special) const {
  require(token);
  const std::string_view text = vocabulary().text(token);
  if (is_silent(token)) return special ? std::string(text) : std::string();
  if (vocabulary().kind(token) == TokenKind::byte) {
    const auto byte = std::find(byte_tokens_.begin(), byte_tokens_.end(), token);
    if (byte != byte_tokens_.end()) {
      return {static_cast<char>(byte - byte_tokens_.begin())};
    }
  }
  return with_spaces(text);
}

std::string SentencePieceTokenizer::decode(std::span<const TokenId> tokens, bool special) const {
  std::string text;
  bool stretch_begins = true;
  for (const TokenId token : tokens) {
    std::string_view piece;
    const std::string bytes = token_bytes(token, special);
    piece = bytes;
    // The space in front of a stretch of plain text is the tokenizer's own.
    if (space_prefix_ && stretch_begins && !starts_stretch(token) && piece.starts_with(' ')) {
      piece.remove_prefix(1);
    }
    text += piece;
    stretch_begins = starts_stretch(token);
  }
  return text;
}

}  // namespace edgerunner
