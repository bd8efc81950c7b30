#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "edgerunner/types.h"
#include "tokenizer/string_index.h"

namespace edgerunner {

// Where in the ids of this call of encode the ids of a word stand already: text repeats its words.
// Direct-mapped and of fixed size; belongs to one call, so that nothing is shared between threads.
class WordCache {
 public:
  // The cache costs a clean allocation of 128 KiB, which a short text doesn't earn back.
  explicit WordCache(std::size_t text_bytes) {
    if (text_bytes >= kMinText) entries_.resize(kEntries);
  }

  // Appends the ids of `word` to `ids` where they are known.
  bool replay(std::string_view word, std::vector<TokenId>& ids) const {
    if (!holds(word)) return false;
    const Entry& entry = entries_[slot(word)];
    if (entry.length != word.size() || std::memcmp(entry.word, word.data(), word.size()) != 0) {
      return false;
    }
    for (std::uint32_t i = 0; i < entry.count; ++i) ids.push_back(ids[entry.first + i]);
    return true;
  }

  // `word` has the ids from ids[first] to the end.
  void remember(std::string_view word, const std::vector<TokenId>& ids, std::size_t first) {
    if (!holds(word)) return;
    Entry& entry = entries_[slot(word)];
    entry.first = static_cast<std::uint32_t>(first);
    entry.count = static_cast<std::uint8_t>(ids.size() - first);  // at most one a byte
    entry.length = static_cast<std::uint8_t>(word.size());
    std::memcpy(entry.word, word.data(), word.size());
  }

 private:
  static constexpr std::size_t kMinText = 4096;
  static constexpr std::size_t kEntries = 4096;
  static constexpr std::size_t kLongest = 26;  // makes an entry half a cache line

  struct Entry {
    std::uint32_t first;
    std::uint8_t count;
    std::uint8_t length;  // 0: nothing here
    char word[kLongest];
  };

  bool holds(std::string_view word) const {
    return !entries_.empty() && !word.empty() && word.size() <= kLongest;
  }
  static std::size_t slot(std::string_view word) { return hash_bytes(word, 0) % kEntries; }

  std::vector<Entry> entries_;
};

}  // namespace edgerunner
