#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace edgerunner {

// Finds stop strings in a stream of text, however the text is cut into pieces. The match that ends
// first counts (of several that end there, the longest), so that the outcome doesn't depend on the
// cuts. Text that may turn out to be the beginning of a stop is held back until that is decided.
class StopMatcher {
 public:
  // Throws Error(invalid_argument) for an empty stop or one that isn't valid UTF-8.
  explicit StopMatcher(std::span<const std::string> stops);

  // Takes whole characters; returns the text that is now certain to stand before any stop.
  // Everything from a stop on is dropped.
  std::string push(std::string_view text);

  // The end of the stream: what was held back, which became no stop.
  std::string finish();

  bool stopped() const { return stopped_; }

 private:
  struct Pattern {
    std::string text;
    std::vector<std::size_t> borders;  // Knuth, Morris and Pratt's failure function
    std::size_t matched = 0;           // bytes of `text` that the stream's end matches
  };

  std::vector<Pattern> patterns_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace edgerunner
