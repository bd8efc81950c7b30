#include "constraint/json_grammar.h"

#include <array>
#include <string_view>
#include <vector>

namespace edgerunner {
namespace {

constexpr std::int64_t kMostDigits = 18;  // what a 64-bit integer holds
constexpr std::int64_t kMostIndent = 16;
constexpr std::size_t kMostLevels = 32;  // of arrays and objects in a value of any shape

}  // namespace

NodeId JsonGrammar::rule(std::optional<NodeId>& known, NodeId (JsonGrammar::*body)(), NodeId next) {
  if (!known) {
    known = builder_.reserve();
    builder_.define(*known, (this->*body)());
  }
  return builder_.call(*known, next);
}

NodeId JsonGrammar::space(NodeId next) { return rule(space_, &JsonGrammar::space_body, next); }
NodeId JsonGrammar::value(NodeId next) { return value(kMostLevels, next); }
NodeId JsonGrammar::object(NodeId next) { return object(kMostLevels, next); }
NodeId JsonGrammar::array(NodeId next) { return array(kMostLevels, next); }
NodeId JsonGrammar::string(NodeId next) { return rule(string_, &JsonGrammar::string_body, next); }
NodeId JsonGrammar::character(NodeId next) {
  return rule(character_, &JsonGrammar::character_body, next);
}
NodeId JsonGrammar::number(NodeId next) { return rule(number_, &JsonGrammar::number_body, next); }
NodeId JsonGrammar::integer(NodeId next) {
  return rule(integer_, &JsonGrammar::integer_body, next);
}

NodeId JsonGrammar::space_body() {
  const auto blank = [this](NodeId next) { return builder_.literal(" ", next); };
  const NodeId line =
      builder_.literal("\n", builder_.repeat(blank, 0, kMostIndent, GrammarBuilder::kEnd));
  return builder_.either({GrammarBuilder::kEnd, builder_.literal(" ", GrammarBuilder::kEnd), line});
}

// Values of at most `levels` levels, so that whatever is begun can be ended.
NodeId JsonGrammar::value(std::size_t levels, NodeId next) {
  constexpr NodeId kEnd = GrammarBuilder::kEnd;
  while (values_.size() <= levels) {
    const std::size_t made = values_.size();
    std::vector<NodeId> ways = {string(kEnd), number(kEnd), boolean(kEnd), null(kEnd)};
    if (made > 0) ways.insert(ways.begin(), {object(made - 1, kEnd), array(made - 1, kEnd)});
    values_.push_back(builder_.either(ways));
  }
  return builder_.call(values_[levels], next);
}

NodeId JsonGrammar::list(const GrammarBuilder::Part& part, std::int64_t least, std::int64_t most,
                         NodeId next) {
  const NodeId close = space(next);  // the bracket follows
  if (most == 0) return close;
  const auto another = [&](NodeId after) { return builder_.literal(",", space(part(after))); };
  const NodeId rest =
      builder_.repeat(another, least > 0 ? least - 1 : 0, most < 0 ? -1 : most - 1, close);
  const NodeId some = space(part(rest));
  return least > 0 ? some : builder_.either({close, some});
}

NodeId JsonGrammar::object(std::size_t levels, NodeId next) {
  const auto member = [&](NodeId after) {
    return string(builder_.literal(":", space(value(levels, after))));
  };
  return builder_.literal("{", list(member, 0, -1, builder_.literal("}", next)));
}

NodeId JsonGrammar::array(std::size_t levels, NodeId next) {
  const auto item = [&](NodeId after) { return value(levels, after); };
  return builder_.literal("[", list(item, 0, -1, builder_.literal("]", next)));
}

NodeId JsonGrammar::string_body() {
  const NodeId close = builder_.literal("\"", GrammarBuilder::kEnd);
  return builder_.literal(
      "\"", builder_.repeat([this](NodeId next) { return character(next); }, 0, -1, close));
}

NodeId JsonGrammar::character_body() {
  constexpr NodeId kEnd = GrammarBuilder::kEnd;
  constexpr std::array<GrammarBuilder::CodePoints, 3> kPlain = {
      {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x10FFFF}}};
  const ByteSet hex = byte_range('0', '9') | byte_range('a', 'f') | byte_range('A', 'F');
  const NodeId two = builder_.bytes(hex, builder_.bytes(hex, kEnd));
  // \uD800 to \uDFFF are halves of characters.
  const ByteSet d = one_byte('d') | one_byte('D');
  const NodeId four =
      builder_.either({builder_.bytes(hex & ~d, builder_.bytes(hex, two)),
                       builder_.bytes(d, builder_.bytes(byte_range('0', '7'), two))});
  ByteSet short_escape;
  for (const char c : std::string_view("\"\\/bfnrt")) short_escape |= one_byte(c);
  const NodeId escape =
      builder_.either({builder_.bytes(short_escape, kEnd), builder_.literal("u", four)});
  return builder_.either({builder_.code_points(kPlain, kEnd), builder_.literal("\\", escape)});
}

NodeId JsonGrammar::boolean(NodeId next) {
  return builder_.either({builder_.literal("true", next), builder_.literal("false", next)});
}

NodeId JsonGrammar::null(NodeId next) { return builder_.literal("null", next); }

NodeId JsonGrammar::digits(std::int64_t least, std::int64_t most, NodeId next) {
  return builder_.repeat(
      [this](NodeId after) { return builder_.bytes(byte_range('0', '9'), after); }, least, most,
      next);
}

NodeId JsonGrammar::integer_body() {
  constexpr NodeId kEnd = GrammarBuilder::kEnd;
  const NodeId some = builder_.bytes(byte_range('1', '9'), digits(0, kMostDigits - 1, kEnd));
  return builder_.either({builder_.literal("0", kEnd), some, builder_.literal("-", some)});
}

NodeId JsonGrammar::number_body() {
  constexpr NodeId kEnd = GrammarBuilder::kEnd;
  const NodeId power = digits(1, 2, kEnd);
  const NodeId exponent = builder_.bytes(
      one_byte('e') | one_byte('E'),
      builder_.either({power, builder_.bytes(one_byte('+') | one_byte('-'), power)}));
  const NodeId behind = builder_.either({kEnd, exponent});
  const NodeId fraction = builder_.literal(".", digits(1, kMostDigits, behind));
  const NodeId after = builder_.either({behind, fraction});
  const NodeId whole =
      builder_.either({builder_.literal("0", after),
                       builder_.bytes(byte_range('1', '9'), digits(0, kMostDigits - 1, after))});
  return builder_.either({whole, builder_.literal("-", whole)});
}

}  // namespace edgerunner
