#include "tokenizer/unigram_normalizer.h"

#include "tokenizer/piece_tokenizer.h"
#include "tokenizer/text_limit.h"
#include "tokenizer/utf8.h"

namespace edgerunner {

UnigramNormalizer::UnigramNormalizer(const gguf::File& file)
    : charsmap_(Charsmap::read(file)),
      adds_space_(file.get_bool("tokenizer.ggml.add_space_prefix").value_or(true)),
      removes_spaces_(file.get_bool("tokenizer.ggml.remove_extra_whitespaces").value_or(false)) {}

UnigramNormalizer::Front UnigramNormalizer::normalize_front(std::string_view text) const {
  const Charsmap::Rule rule = charsmap_.find(text);
  if (rule.length > 0) return {rule.length, rule.replacement};
  const Utf8Unit unit = first_utf8_unit(text);
  if (unit.kind != Utf8Unit::Kind::character) return {1, kReplacementCharacter};
  return {unit.length, text.substr(0, unit.length)};
}

std::string UnigramNormalizer::normalize(std::string_view text) const {
  if (removes_spaces_) {
    while (!text.empty()) {
      const Front front = normalize_front(text);
      if (front.normalized != " ") break;
      text.remove_prefix(front.length);
    }
  }
  std::string result;
  if (text.empty()) return result;
  result.reserve(text.size() + text.size() / 2);
  if (adds_space_) result += kSpaceMark;

  bool drops_space = removes_spaces_;  // one has been written, or the text begins
  while (!text.empty()) {
    auto [length, normalized] = normalize_front(text);
    text.remove_prefix(length);
    while (drops_space && normalized.starts_with(' ')) normalized.remove_prefix(1);
    if (normalized.empty()) continue;
    for (const char c : normalized) {
      if (c == ' ') {
        result += kSpaceMark;
      } else {
        result += c;
      }
    }
    require_encodable(result.size());
    drops_space = removes_spaces_ && normalized.ends_with(' ');
  }
  if (removes_spaces_) {
    while (result.ends_with(kSpaceMark)) result.resize(result.size() - kSpaceMark.size());
  }
  return result;
}

}  // namespace edgerunner
