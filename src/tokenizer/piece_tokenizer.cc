#include "tokenizer/piece_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "edgerunner/error.h"

namespace edgerunner {
namespace {

constexpr std::string_view kScores = "tokenizer.ggml.scores";

// SentencePiece's own limit is 16 characters unless it is raised.
constexpr std::size_t kLongestToken = 1024;

std::string with_spaces(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t mark = std::min(text.find(kSpaceMark, at), text.size());
    result += text.substr(at, mark - at);
    if (mark < text.size()) result += ' ';
    at = mark + kSpaceMark.size();
  }
  return result;
}

}  // namespace

PieceTokenizer::PieceTokenizer(Vocabulary vocabulary, Surround surround, bool space_prefix)
    : VocabularyTokenizer(std::move(vocabulary), surround), space_prefix_(space_prefix) {
  for (unsigned byte = 0; byte < 256; ++byte) {
    byte_tokens_[byte] = find(fmt::format("<0x{:02X}>", byte));
    if (byte_tokens_[byte] == kNoToken) byte_fallback_ = false;
  }
}

std::vector<float> PieceTokenizer::read_scores(const gguf::File& file, std::size_t tokens) {
  auto scores = file.get_floats(kScores);
  const auto fail = [&](std::string_view what) {
    throw Error(ErrorCode::invalid_file, fmt::format("{}: {}: {}", file.name(), kScores, what));
  };
  if (!scores) fail("the key is missing, but this tokenizer.ggml.model needs it");
  if (scores->size() != tokens)
    fail(fmt::format("{} scores for {} tokens", scores->size(), tokens));
  if (std::any_of(scores->begin(), scores->end(), [](float score) { return std::isnan(score); })) {
    fail("a score is not a number");
  }
  return std::move(*scores);
}

void PieceTokenizer::require_length(const gguf::File& file, TokenId token, std::string_view text) {
  if (text.size() > kLongestToken) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: tokenizer.ggml.tokens: token {} has {} bytes; the limit is {}",
                            file.name(), token, text.size(), kLongestToken));
  }
}

void PieceTokenizer::append_unknown(std::string_view character, std::vector<TokenId>& ids) const {
  if (byte_fallback_) {
    for (const char byte : character) {
      ids.push_back(byte_tokens_[static_cast<std::uint8_t>(byte)]);
    }
  } else if (vocabulary().unknown() != kNoToken) {
    ids.push_back(vocabulary().unknown());
  }
}

void PieceTokenizer::fuse_unknown(std::vector<TokenId>& ids, std::size_t first) const {
  if (byte_fallback_) return;
  const auto both_unknown = [&](TokenId a, TokenId b) {
    return a == b && a == vocabulary().unknown();
  };
  ids.erase(std::unique(ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end(), both_unknown),
            ids.end());
}

bool PieceTokenizer::starts_stretch(TokenId token) const {
  const TokenKind kind = vocabulary().kind(token);
  // With byte fallback no character is unknown: such a token was written as itself.
  return kind == TokenKind::control || kind == TokenKind::user_defined ||
         (kind == TokenKind::unknown && byte_fallback_);
}

std::string PieceTokenizer::token_bytes(TokenId token, bool special) const {
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

std::string PieceTokenizer::decode(std::span<const TokenId> tokens, bool special) const {
  std::string text;
  bool stretch_begins = true;
  for (const TokenId token : tokens) {
    const std::string bytes = token_bytes(token, special);
    std::string_view piece = bytes;
    if (space_prefix_ && stretch_begins && !starts_stretch(token) && piece.starts_with(' ')) {
      piece.remove_prefix(1);
    }
    text += piece;
    stretch_begins = starts_stretch(token);
  }
  return text;
}

}  // namespace edgerunner
