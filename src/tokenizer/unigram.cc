#include "tokenizer/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "edgerunner/error.h"
#include "tokenizer/utf8.h"

namespace edgerunner {
namespace {

// How much less likely SentencePiece takes an unknown character to be than any token.
constexpr double kUnknownPenalty = 10.0;

double least_score(const Vocabulary& vocabulary, const std::vector<float>& scores) {
  double least = std::numeric_limits<double>::infinity();
  for (TokenId token = 0; vocabulary.contains(token); ++token) {
    if (is_plain(vocabulary.kind(token))) {
      least = std::min<double>(least, scores[static_cast<std::size_t>(token)]);
    }
  }
  return std::isfinite(least) ? least : 0.0;
}

}  // namespace

PrefixTree UnigramTokenizer::plain_tokens(const gguf::File& file, const Vocabulary& vocabulary) {
  std::vector<PrefixTree::Entry> entries;
  for (TokenId token = 0; vocabulary.contains(token); ++token) {
    if (!is_plain(vocabulary.kind(token))) continue;
    const std::string_view text = vocabulary.text(token);
    require_length(file, token, text);
    if (valid_utf8_prefix(text) != text.size()) continue;  // no characters make it up
    entries.push_back({text, token});
  }
  return PrefixTree(std::move(entries));
}

std::unique_ptr<Tokenizer> UnigramTokenizer::load(const gguf::File& file) {
  Vocabulary vocabulary = Vocabulary::read(file, {.bos = {}, .eos = "</s>", .unknown = "<unk>"});
  std::vector<float> scores = read_scores(file, vocabulary.size());
  if (!std::all_of(scores.begin(), scores.end(),
                   [](float score) { return std::isfinite(score); })) {
    throw Error(ErrorCode::invalid_file,
                fmt::format("{}: tokenizer.ggml.scores: a score is not finite", file.name()));
  }
  PrefixTree tree = plain_tokens(file, vocabulary);
  return std::unique_ptr<Tokenizer>(new UnigramTokenizer(std::move(vocabulary), std::move(scores),
                                                         std::move(tree), UnigramNormalizer(file)));
}

UnigramTokenizer::UnigramTokenizer(Vocabulary vocabulary, std::vector<float> scores,
                                   PrefixTree tree, UnigramNormalizer normalizer)
    : PieceTokenizer(std::move(vocabulary), {.eos = true}, normalizer.adds_space()),
      scores_(std::move(scores)),
      tree_(std::move(tree)),
      normalizer_(std::move(normalizer)),
      unknown_score_(least_score(this->vocabulary(), scores_) - kUnknownPenalty) {
  match_special([](std::string_view text) { return text; });
}

void UnigramTokenizer::encode_all(std::string_view text, const EncodeOptions& options,
                                  Call& call) const {
  std::vector<Way> ways;
  divide(text, options, call.ids, [&](std::string_view stretch) {
    const std::string normalized = normalizer_.normalize(stretch);
    const std::size_t first = call.ids.size();
    for (std::string_view rest = normalized; !rest.empty();) {
      rest.remove_prefix(encode_front(rest, ways, call.ids));
    }
    fuse_unknown(call.ids, first);
  });
}

std::size_t UnigramTokenizer::encode_front(std::string_view text, std::vector<Way>& ways,
                                           std::vector<TokenId>& ids) const {
  constexpr Way kNoWay = {-std::numeric_limits<double>::infinity(), 0, kNoToken};
  ways.assign(1, {0.0, 0, kNoToken});  // ways[end]
  std::size_t at = 0;
  do {
    const std::size_t character = first_utf8_unit(text.substr(at)).length;
    const double score = ways[at].score;
    const auto offer = [&](std::size_t length, double token_score, TokenId token) {
      const std::size_t end = at + length;
      if (end >= ways.size()) ways.resize(end + 1, kNoWay);
      if (score + token_score > ways[end].score) {
        ways[end] = {score + token_score, static_cast<std::uint32_t>(at), token};
      }
    };
    bool known = false;
    tree_.match(text.substr(at), [&](std::size_t length, TokenId token) {
      known = known || length == character;
      offer(length, scores_[static_cast<std::size_t>(token)], token);
    });
    if (!known) offer(character, unknown_score_, kNoToken);
    at += character;
  } while (at + 1 < ways.size());

  // Back along the best way, so that its ids come in reverse.
  const std::size_t first = ids.size();
  for (std::size_t end = at; end > 0; end = ways[end].begin) {
    const std::size_t begin = ways[end].begin;
    if (ways[end].token != kNoToken) {
      ids.push_back(ways[end].token);
      continue;
    }
    const std::size_t unknown = ids.size();
    append_unknown(text.substr(begin, end - begin), ids);
    std::reverse(ids.begin() + static_cast<std::ptrdiff_t>(unknown), ids.end());
  }
  std::reverse(ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end());
  return at;
}

}  // namespace edgerunner
