#include "constraint/grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include "edgerunner/error.h"

namespace edgerunner {
namespace {

// Room for the largest limits on lengths that make sense; a grammar takes 16 bytes a node.
constexpr std::size_t kMostNodes = 2'000'000;
constexpr char32_t kLastCodePoint = 0x10FFFF;

using CodePoints = GrammarBuilder::CodePoints;

std::size_t utf8_length(char32_t c) { return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4; }

std::array<unsigned, 4> utf8_bytes(char32_t c) {
  switch (utf8_length(c)) {
    case 1:
      return {c, 0, 0, 0};
    case 2:
      return {0xC0U | c >> 6, 0x80U | (c & 0x3F), 0, 0};
    case 3:
      return {0xE0U | c >> 12, 0x80U | (c >> 6 & 0x3F), 0x80U | (c & 0x3F), 0};
    default:
      return {0xF0U | c >> 18, 0x80U | (c >> 12 & 0x3F), 0x80U | (c >> 6 & 0x3F),
              0x80U | (c & 0x3F)};
  }
}

// The strongly connected parts of a graph over a grammar's nodes (Tarjan 1972). Iterative: a
// grammar may nest as deep as it is long.
class Components {
 public:
  using Ways = std::function<std::vector<NodeId>(NodeId)>;

  Components(std::size_t nodes, const Ways& ways) : order_(nodes, 0), low_(order_), part_(order_) {
    for (NodeId node = 0; node < nodes; ++node) {
      if (order_[node] == 0) visit(node, ways);
    }
  }

  bool together(NodeId a, NodeId b) const { return part_[a] == part_[b]; }

 private:
  void visit(NodeId start, const Ways& ways) {
    struct Frame {
      NodeId node;
      std::vector<NodeId> ways;
      std::size_t way = 0;
    };
    std::vector<Frame> path;
    const auto enter = [&](NodeId node) {
      order_[node] = low_[node] = ++visited_;
      open_.push_back(node);
      path.push_back({node, ways(node)});
    };
    enter(start);
    while (!path.empty()) {
      Frame& frame = path.back();
      const NodeId node = frame.node;
      if (frame.way < frame.ways.size()) {
        const NodeId next = frame.ways[frame.way++];
        if (order_[next] == 0) {
          enter(next);
        } else if (part_[next] == 0) {
          low_[node] = std::min(low_[node], order_[next]);
        }
        continue;
      }
      path.pop_back();
      if (!path.empty()) low_[path.back().node] = std::min(low_[path.back().node], low_[node]);
      if (low_[node] != order_[node]) continue;
      ++parts_;
      for (bool more = true; more; open_.pop_back()) {
        part_[open_.back()] = parts_;
        more = open_.back() != node;
      }
    }
  }

  std::vector<std::uint32_t> order_;  // of the visit, from 1
  std::vector<std::uint32_t> low_;
  std::vector<std::uint32_t> part_;  // from 1; 0 while open
  std::vector<NodeId> open_;
  std::uint32_t visited_ = 0;
  std::uint32_t parts_ = 0;
};

// Nodes from which a rule's end is reached: by any bytes, or by none. To a fixed point; few rounds,
// since nodes are made after those that they lead to, but for rules and loops.
std::vector<bool> reaching_end(const Grammar& grammar, bool by_bytes) {
  std::vector<bool> reaches(grammar.nodes.size(), false);
  const auto holds = [&](const Grammar::Node& node) {
    switch (node.kind) {
      case Grammar::NodeKind::end:
        return true;
      case Grammar::NodeKind::bytes:
        return by_bytes && reaches[node.second];
      case Grammar::NodeKind::split:
        return std::any_of(grammar.branches.begin() + node.first,
                           grammar.branches.begin() + node.first + node.second,
                           [&reaches](NodeId way) { return reaches[way]; });
      default:
        return reaches[node.first] && reaches[node.second];
    }
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (NodeId id = 0; id < grammar.nodes.size(); ++id) {
      if (!reaches[id] && holds(grammar.nodes[id])) reaches[id] = changed = true;
    }
  }
  return reaches;
}

bool has_left_recursion(const Grammar& grammar) {
  const std::vector<bool> nullable = reaching_end(grammar, false);
  const auto free_ways = [&](NodeId id) -> std::vector<NodeId> {
    const Grammar::Node& node = grammar.nodes[id];
    if (node.kind == Grammar::NodeKind::split) return grammar.ways_of(node);
    if (node.kind != Grammar::NodeKind::call) return {};
    if (nullable[node.first]) return {node.first, node.second};
    return {node.first};
  };
  const Components components(grammar.nodes.size(), free_ways);
  for (NodeId id = 0; id < grammar.nodes.size(); ++id) {
    const Grammar::Node& node = grammar.nodes[id];
    if (node.kind == Grammar::NodeKind::call && components.together(id, node.first)) return true;
  }
  return false;
}

// Calls from which the same call can come again, within itself.
void mark_nesting(Grammar& grammar) {
  const auto all_ways = [&](NodeId id) -> std::vector<NodeId> {
    const Grammar::Node& node = grammar.nodes[id];
    switch (node.kind) {
      case Grammar::NodeKind::end:
        return {};
      case Grammar::NodeKind::bytes:
        return {node.second};
      case Grammar::NodeKind::split:
        return grammar.ways_of(node);
      default:
        return {node.first, node.second};
    }
  };
  const Components components(grammar.nodes.size(), all_ways);
  for (NodeId id = 0; id < grammar.nodes.size(); ++id) {
    Grammar::Node& node = grammar.nodes[id];
    if (node.kind == Grammar::NodeKind::call && components.together(id, node.first)) {
      node.kind = Grammar::NodeKind::nested_call;
    }
  }
}

// Takes out the ways that never reach an end, so that no text is led into one.
void prune(Grammar& grammar) {
  const std::vector<bool> ends = reaching_end(grammar, true);
  if (!ends[grammar.start]) {
    throw Error(ErrorCode::invalid_argument, "the grammar or schema allows no text that ends");
  }
  for (Grammar::Node& node : grammar.nodes) {
    if (node.kind != Grammar::NodeKind::split) continue;
    const auto first = grammar.branches.begin() + node.first;
    const auto last = std::stable_partition(first, first + node.second,
                                            [&ends](NodeId way) { return ends[way]; });
    node.second = static_cast<std::uint32_t>(last - first);
  }
}

}  // namespace

GrammarBuilder::GrammarBuilder() { add({.kind = Grammar::NodeKind::end}); }

NodeId GrammarBuilder::add(const Grammar::Node& node) {
  if (grammar_.nodes.size() >= kMostNodes) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the grammar needs more than {} nodes; lower its limits on lengths and "
                            "repetitions",
                            kMostNodes));
  }
  grammar_.nodes.push_back(node);
  return static_cast<NodeId>(grammar_.nodes.size() - 1);
}

NodeId GrammarBuilder::bytes(const ByteSet& set, NodeId next) {
  if (next == kNothing || set.none()) return kNothing;
  const auto found = std::find(grammar_.sets.rbegin(), grammar_.sets.rend(), set);
  std::size_t index = grammar_.sets.size();
  if (found == grammar_.sets.rend()) {
    grammar_.sets.push_back(set);
  } else {
    index = static_cast<std::size_t>(grammar_.sets.rend() - found) - 1;
  }
  return add({Grammar::NodeKind::bytes, static_cast<std::uint32_t>(index), next});
}

NodeId GrammarBuilder::literal(std::string_view text, NodeId next) {
  for (std::size_t i = text.size(); i > 0; --i) next = bytes(one_byte(text[i - 1]), next);
  return next;
}

NodeId GrammarBuilder::either(std::span<const NodeId> ways) {
  std::vector<NodeId> open;
  std::unordered_set<NodeId> seen;
  for (const NodeId way : ways) {
    if (way != kNothing && seen.insert(way).second) open.push_back(way);
  }
  if (open.empty()) return kNothing;
  if (open.size() == 1) return open.front();
  const auto first = static_cast<std::uint32_t>(grammar_.branches.size());
  grammar_.branches.insert(grammar_.branches.end(), open.begin(), open.end());
  return add({Grammar::NodeKind::split, first, static_cast<std::uint32_t>(open.size())});
}

NodeId GrammarBuilder::call(NodeId rule, NodeId next) {
  if (rule == kNothing || next == kNothing) return kNothing;
  return add({Grammar::NodeKind::call, rule, next});
}

NodeId GrammarBuilder::code_points(std::span<const CodePoints> ranges, NodeId next) {
  std::vector<NodeId> ways;
  // Each range is cut where the length of its UTF-8 or the shape of its last bytes changes, so that
  // every piece is a sequence of ranges of bytes.
  std::vector<CodePoints> pieces(ranges.rbegin(), ranges.rend());
  while (!pieces.empty()) {
    CodePoints piece = pieces.back();
    pieces.pop_back();
    const auto cut = [&](char32_t last_of_first) {
      if (piece.first > last_of_first || piece.last <= last_of_first) return;
      pieces.push_back({last_of_first + 1, piece.last});
      piece.last = last_of_first;
    };
    if (piece.first > piece.last) continue;
    for (const char32_t last : {0x7FU, 0x7FFU, 0xD7FFU, 0xDFFFU, 0xFFFFU}) cut(last);
    if (piece.first >= 0xD800 && piece.first <= 0xDFFF) continue;  // no characters
    for (std::size_t i = 1; i < utf8_length(piece.first); ++i) {
      const char32_t mask = (char32_t{1} << (6 * i)) - 1;
      if ((piece.first & ~mask) == (piece.last & ~mask)) continue;
      if ((piece.first & mask) != 0) cut(piece.first | mask);
      if ((piece.last & mask) != mask) cut((piece.last & ~mask) - 1);
    }
    const auto low = utf8_bytes(piece.first);
    const auto high = utf8_bytes(piece.last);
    NodeId way = next;
    for (std::size_t i = utf8_length(piece.first); i > 0; --i) {
      way = bytes(byte_range(low[i - 1], high[i - 1]), way);
    }
    ways.push_back(way);
  }
  return either(ways);
}

NodeId GrammarBuilder::repeat(const Part& part, std::int64_t least, std::int64_t most,
                              NodeId next) {
  NodeId entry = next;
  if (most < 0) {
    const NodeId loop = reserve();
    define(loop, either({next, part(loop)}));
    entry = loop;
  } else {
    for (std::int64_t i = least; i < most; ++i) {
      const NodeId once = part(entry);
      if (once == entry) break;  // the part is empty
      entry = either({next, once});
    }
  }
  for (std::int64_t i = 0; i < least; ++i) {
    const NodeId once = part(entry);
    if (once == entry) break;
    entry = once;
  }
  return entry;
}

NodeId GrammarBuilder::reserve() { return add({Grammar::NodeKind::split, 0, 0}); }

void GrammarBuilder::define(NodeId reserved, NodeId body) {
  if (body == kNothing) return;  // a split without ways
  const auto first = static_cast<std::uint32_t>(grammar_.branches.size());
  grammar_.branches.push_back(body);
  grammar_.nodes[reserved] = {Grammar::NodeKind::split, first, 1};
}

Grammar GrammarBuilder::finish(NodeId start) {
  if (start == kNothing) {
    throw Error(ErrorCode::invalid_argument, "the grammar allows no text at all");
  }
  grammar_.start = start;
  prune(grammar_);
  if (has_left_recursion(grammar_)) {
    throw Error(ErrorCode::invalid_argument,
                "a rule of the grammar calls itself before it takes anything (left recursion); put "
                "something in front of it");
  }
  mark_nesting(grammar_);
  return std::move(grammar_);
}

std::vector<CodePoints> complement(std::vector<CodePoints> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const CodePoints& a, const CodePoints& b) { return a.first < b.first; });
  std::vector<CodePoints> result;
  char32_t next = 0;
  for (const CodePoints& range : ranges) {
    if (range.first > next) result.push_back({next, range.first - 1});
    next = std::max(next, static_cast<char32_t>(range.last + 1));
  }
  if (next <= kLastCodePoint) result.push_back({next, kLastCodePoint});
  return result;
}

}  // namespace edgerunner
