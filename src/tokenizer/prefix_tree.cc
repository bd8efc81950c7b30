#include "tokenizer/prefix_tree.h"

#include <fmt/format.h>

#include "edgerunner/error.h"

namespace edgerunner {

PrefixTree::PrefixTree(std::vector<Entry> entries) {
  std::size_t bytes = 0;
  for (const Entry& entry : entries) bytes += entry.text.size();
  if (bytes >= kNone) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("a vocabulary of {} bytes is too large; the limit is {}", bytes, kNone - 1));
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.text < b.text; });

  // The entries [low, high) have the text of node `parent` in common, which is `depth` bytes long.
  struct Range {
    std::uint32_t parent;
    std::size_t low;
    std::size_t high;
    std::size_t depth;
  };
  const auto byte_at = [](const Entry& entry, std::size_t depth) {
    return static_cast<std::uint8_t>(entry.text[depth]);
  };
  std::vector<Range> level;
  const auto add_children = [&](Range range, std::vector<Range>& next) {
    while (range.low < range.high && entries[range.low].text.size() == range.depth) ++range.low;
    while (range.low < range.high) {
      const std::uint8_t label = byte_at(entries[range.low], range.depth);
      const std::size_t begin = range.low;
      while (range.low < range.high && byte_at(entries[range.low], range.depth) == label) {
        ++range.low;
      }
      const auto node = static_cast<std::uint32_t>(nodes_.size());
      const bool whole = entries[begin].text.size() == range.depth + 1;
      nodes_.push_back({0, 0, label, whole ? entries[begin].token : kNoToken});
      if (range.parent == kNone) {
        roots_[label] = node;
      } else {
        Node& parent = nodes_[range.parent];
        if (parent.children++ == 0) parent.first_child = node;
      }
      next.push_back({node, begin, range.low, range.depth + 1});
    }
  };

  roots_.fill(kNone);
  add_children({kNone, 0, entries.size(), 0}, level);
  while (!level.empty()) {
    std::vector<Range> next;
    for (const Range& range : level) add_children(range, next);
    level = std::move(next);
  }
  nodes_.shrink_to_fit();
}

}  // namespace edgerunner
