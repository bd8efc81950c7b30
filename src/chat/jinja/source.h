#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "edgerunner/error.h"

namespace edgerunner::jinja {

// A template's text with its line ends made "\n" and one at its very end dropped, as Jinja does
// before it reads it. Knows lines and columns, for errors.
class Source {
 public:
  // Throws Error(invalid_file) where the text is not UTF-8 or larger than kMostBytes.
  explicit Source(std::string_view text);

  const std::string& text() const { return text_; }

  // An error at a place: "chat template, line 3, column 14: ...".
  Error error(ErrorCode code, std::size_t offset, std::string_view what) const;

  // Far above any template that a model ships (the largest known are near 20 KB).
  static constexpr std::size_t kMostBytes = std::size_t{4} << 20;

 private:
  std::string text_;
};

}  // namespace edgerunner::jinja
