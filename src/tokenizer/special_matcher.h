#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edgerunner/types.h"

namespace edgerunner {

// Finds tokens that stand in the text as a whole: at each position the longest one.
class SpecialMatcher {
 public:
  void add(std::string_view text, TokenId token);  // before finish()
  void finish();

  struct Match {
    std::size_t begin;
    std::size_t end;
    TokenId token;
  };
  // The leftmost match at `from` or later.
  std::optional<Match> find(std::string_view text, std::size_t from) const;

 private:
  struct Entry {
    std::string text;
    TokenId token;
  };
  std::vector<Entry> entries_;  // sorted, so that those with a common prefix are neighbours
  std::array<std::size_t, 257> by_first_byte_{};  // entries that begin with b: [b] to [b + 1]
};

}  // namespace edgerunner
