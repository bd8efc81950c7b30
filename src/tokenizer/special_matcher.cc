#include "tokenizer/special_matcher.h"

#include <algorithm>

namespace edgerunner {
namespace {

unsigned char byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

}  // namespace

void SpecialMatcher::add(std::string_view text, TokenId token) {
  entries_.push_back({std::string(text), token});
}

void SpecialMatcher::finish() {
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& a, const Entry& b) { return a.text < b.text; });
  std::size_t at = 0;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    by_first_byte_[byte] = at;
    while (at < entries_.size() && byte_at(entries_[at].text, 0) == byte) ++at;
  }
  by_first_byte_[256] = at;
}

std::optional<SpecialMatcher::Match> SpecialMatcher::find(std::string_view text,
                                                          std::size_t from) const {
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    std::size_t low = by_first_byte_[byte_at(text, begin)];
    std::size_t high = by_first_byte_[byte_at(text, begin) + std::size_t{1}];
    std::optional<Match> longest;
    // [low, high): the entries that begin with the `depth` bytes seen so far.
    for (std::size_t depth = 1; low < high; ++depth) {
      if (entries_[low].text.size() == depth) {  // the shortest sorts first
        longest = {begin, begin + depth, entries_[low].token};
        ++low;
      }
      if (begin + depth == text.size()) break;
      const unsigned char byte = byte_at(text, begin + depth);
      const auto first = entries_.begin();
      low = static_cast<std::size_t>(
          std::partition_point(first + static_cast<std::ptrdiff_t>(low),
                               first + static_cast<std::ptrdiff_t>(high),
                               [&](const Entry& e) { return byte_at(e.text, depth) < byte; }) -
          first);
      high = static_cast<std::size_t>(
          std::partition_point(first + static_cast<std::ptrdiff_t>(low),
                               first + static_cast<std::ptrdiff_t>(high),
                               [&](const Entry& e) { return byte_at(e.text, depth) == byte; }) -
          first);
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

}  // namespace edgerunner
