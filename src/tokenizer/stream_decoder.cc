#include "edgerunner/tokenizer.h"
#include "tokenizer/utf8.h"

namespace edgerunner {

std::string StreamDecoder::push(TokenId token) {
  // What a token adds depends on the one before it at most (the space in front of a stretch).
  if (previous_ == kNoToken) {
    pending_ += tokenizer_->decode({&token, 1}, special_);
  } else {
    const TokenId both[] = {previous_, token};
    const std::string before = tokenizer_->decode({both, 1}, special_);
    pending_ += tokenizer_->decode(both, special_).substr(before.size());
  }
  previous_ = token;

  std::string text;
  std::size_t at = 0;
  while (at < pending_.size()) {
    const std::string_view rest = std::string_view(pending_).substr(at);
    const Utf8Unit unit = first_utf8_unit(rest);
    if (unit.kind == Utf8Unit::Kind::incomplete) break;
    text += unit.kind == Utf8Unit::Kind::character ? rest.substr(0, unit.length)
                                                   : kReplacementCharacter;
    at += unit.length;
  }
  pending_.erase(0, at);
  return text;
}

std::string StreamDecoder::finish() {
  if (pending_.empty()) return {};
  pending_.clear();
  return std::string(kReplacementCharacter);
}

}  // namespace edgerunner
