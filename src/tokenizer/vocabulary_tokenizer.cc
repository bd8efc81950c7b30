#include "tokenizer/vocabulary_tokenizer.h"

#include <fmt/format.h>

#include <utility>

#include "edgerunner/error.h"
#include "tokenizer/text_limit.h"

namespace edgerunner {

VocabularyTokenizer::VocabularyTokenizer(Vocabulary vocabulary, Surround surround)
    : vocabulary_(std::move(vocabulary)),
      adds_bos_(vocabulary_.add_bos().value_or(surround.bos) && vocabulary_.bos() != kNoToken),
      adds_eos_(vocabulary_.add_eos().value_or(surround.eos) && vocabulary_.eos() != kNoToken) {}

std::vector<TokenId> VocabularyTokenizer::encode(std::string_view text,
                                                 const EncodeOptions& options) const {
  require_encodable(text.size());
  Call call(text.size());
  if (options.add_special && adds_bos_) call.ids.push_back(bos());
  encode_all(text, options, call);
  if (options.add_special && adds_eos_) call.ids.push_back(eos());
  return std::move(call.ids);
}

void VocabularyTokenizer::require(TokenId token) const {
  if (!vocabulary_.contains(token)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("token {} is outside the vocabulary of {}", token, size()));
  }
}

bool VocabularyTokenizer::is_silent(TokenId token) const {
  const TokenKind kind = vocabulary_.kind(token);
  return kind == TokenKind::control || kind == TokenKind::unknown || kind == TokenKind::unused;
}

}  // namespace edgerunner
