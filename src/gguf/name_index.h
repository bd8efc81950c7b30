#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

#include "gguf/file.h"
#include "gguf/value.h"

namespace edgerunner::gguf {

inline std::string_view entry_name(const Value& value) { return value.key; }
inline std::string_view entry_name(const Tensor& tensor) { return tensor.name; }

// Finds entries by name. Sorted rather than hashed: a file can't choose names that make it slow.
template <typename Entry>
class NameIndex {
 public:
  NameIndex() = default;
  explicit NameIndex(std::span<const Entry> entries) : order_(entries.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      return entry_name(entries[a]) < entry_name(entries[b]);
    });
  }

  // `entries` are those that the index was made of, here and below.
  const Entry* find(std::span<const Entry> entries, std::string_view name) const {
    const auto at = std::lower_bound(
        order_.begin(), order_.end(), name,
        [&](std::size_t i, std::string_view wanted) { return entry_name(entries[i]) < wanted; });
    if (at == order_.end() || entry_name(entries[*at]) != name) return nullptr;
    return &entries[*at];
  }

  // An entry whose name another one has too, or nullptr.
  const Entry* duplicate(std::span<const Entry> entries) const {
    const auto at =
        std::adjacent_find(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
          return entry_name(entries[a]) == entry_name(entries[b]);
        });
    return at == order_.end() ? nullptr : &entries[*at];
  }

 private:
  std::vector<std::size_t> order_;
};

}  // namespace edgerunner::gguf
