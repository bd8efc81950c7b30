#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "constraint/grammar.h"

namespace edgerunner {

// The parts of JSON as grammar, shared by all schemas. Strings hold no lone surrogates, numbers at
// most 18 digits on either side of the point and two in the exponent, and values of any shape nest
// at most 32 levels, so that readers agree on what they say. Between tokens stands a space, or a
// line end and at most 16 spaces, or nothing.
class JsonGrammar {
 public:
  explicit JsonGrammar(GrammarBuilder& builder) : builder_(builder) {}

  NodeId space(NodeId next);
  NodeId value(NodeId next);      // any
  NodeId object(NodeId next);     // any
  NodeId array(NodeId next);      // any
  NodeId string(NodeId next);     // any
  NodeId character(NodeId next);  // of a string: one code point, escaped or not
  NodeId boolean(NodeId next);
  NodeId null(NodeId next);
  NodeId number(NodeId next);
  NodeId integer(NodeId next);
  // What stands between brackets: `part` with commas, from `least` to `most` times (negative:
  // without limit).
  NodeId list(const GrammarBuilder::Part& part, std::int64_t least, std::int64_t most, NodeId next);
  NodeId digits(std::int64_t least, std::int64_t most, NodeId next);

 private:
  NodeId rule(std::optional<NodeId>& known, NodeId (JsonGrammar::*body)(), NodeId next);
  NodeId value(std::size_t levels, NodeId next);
  NodeId object(std::size_t levels, NodeId next);
  NodeId array(std::size_t levels, NodeId next);
  NodeId string_body();
  NodeId character_body();
  NodeId space_body();
  NodeId number_body();
  NodeId integer_body();

  GrammarBuilder& builder_;
  std::vector<NodeId> values_;  // rules, by their levels
  std::optional<NodeId> string_;
  std::optional<NodeId> character_;
  std::optional<NodeId> space_;
  std::optional<NodeId> number_;
  std::optional<NodeId> integer_;
};

}  // namespace edgerunner
