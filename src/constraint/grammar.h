#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "constraint/byte_set.h"

namespace edgerunner {

using NodeId = std::uint32_t;

// A grammar over bytes, as a graph: nodes that take a byte, split, call a rule or end one. A rule
// is its first node. Made by GrammarBuilder; immutable.
struct Grammar {
  enum class NodeKind : std::uint8_t {
    bytes,        // takes a byte of sets[first], goes on at `second`
    split,        // goes on at each of branches[first .. first + second)
    call,         // takes what the rule beginning at `first` takes, goes on at `second`
    nested_call,  // a call that the rule may make again, within itself
    end,          // of a rule
  };
  struct Node {
    NodeKind kind = NodeKind::end;
    std::uint32_t first = 0;
    std::uint32_t second = 0;
  };
  std::vector<Node> nodes;
  std::vector<ByteSet> sets;
  std::vector<NodeId> branches;
  NodeId start = 0;

  std::vector<NodeId> ways_of(const Node& split) const {
    return {branches.begin() + split.first, branches.begin() + split.first + split.second};
  }
};

// Builds a grammar from its end to its start: what each function makes goes on at `next`, and its
// first node is returned.
class GrammarBuilder {
 public:
  using Part = std::function<NodeId(NodeId next)>;
  struct CodePoints {
    char32_t first;
    char32_t last;
  };

  GrammarBuilder();

  static constexpr NodeId kEnd = 0;        // the end of a rule
  static constexpr NodeId kNothing = ~0U;  // no way on: an alternative that is not there

  NodeId bytes(const ByteSet& set, NodeId next);
  NodeId literal(std::string_view text, NodeId next);
  NodeId either(std::span<const NodeId> ways);
  NodeId either(std::initializer_list<NodeId> ways) {
    return either(std::span(ways.begin(), ways.size()));
  }
  NodeId call(NodeId rule, NodeId next);
  // One character of the ranges, in UTF-8.
  NodeId code_points(std::span<const CodePoints> ranges, NodeId next);
  // `part` from `least` to `most` times; without limit where `most` is negative.
  NodeId repeat(const Part& part, std::int64_t least, std::int64_t most, NodeId next);

  // A rule whose body is given later: for recursion.
  NodeId reserve();
  void define(NodeId reserved, NodeId body);

  // Throws Error(invalid_argument) for a rule that calls itself before it takes a byte.
  Grammar finish(NodeId start);

 private:
  NodeId add(const Grammar::Node& node);

  Grammar grammar_;
};

// The ranges that are in none of the given, of all characters.
std::vector<GrammarBuilder::CodePoints> complement(std::vector<GrammarBuilder::CodePoints> ranges);

}  // namespace edgerunner
