#include "runtime/stop_matcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "edgerunner/error.h"

namespace edgerunner {
namespace {

// borders[n]: the longest proper prefix of text that is a suffix of its first n bytes.
std::vector<std::size_t> failure_function(std::string_view text) {
  std::vector<std::size_t> borders(text.size() + 1, 0);
  std::size_t length = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    while (length > 0 && text[i] != text[length]) length = borders[length];
    if (text[i] == text[length]) ++length;
    borders[i + 1] = length;
  }
  return borders;
}

}  // namespace

StopMatcher::StopMatcher(std::span<const std::string> stops) {
  for (const std::string& stop : stops) {
    if (stop.empty()) throw Error(ErrorCode::invalid_argument, "a stop string is empty");
    if (!is_utf8(stop)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("stop string {} is not valid UTF-8, so no text can contain it",
                              patterns_.size() + 1));
    }
    patterns_.push_back({stop, failure_function(stop), 0});
  }
}

std::string StopMatcher::push(std::string_view text) {
  if (stopped_) return {};
  std::size_t held = held_.size();
  held_ += text;
  for (std::size_t at = held; at < held_.size(); ++at) {
    held = 0;
    std::size_t stop_length = 0;
    for (Pattern& p : patterns_) {
      while (p.matched > 0 && p.text[p.matched] != held_[at]) p.matched = p.borders[p.matched];
      if (p.text[p.matched] == held_[at]) ++p.matched;
      held = std::max(held, p.matched);
      if (p.matched == p.text.size()) stop_length = std::max(stop_length, p.matched);
    }
    if (stop_length > 0) {
      stopped_ = true;
      held_.resize(at + 1 - stop_length);
      return std::exchange(held_, {});
    }
  }
  std::string ready = held_.substr(0, held_.size() - held);
  held_.erase(0, ready.size());
  return ready;
}

std::string StopMatcher::finish() { return std::exchange(held_, {}); }

}  // namespace edgerunner
