#include "constraint/object_keys.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace edgerunner {
namespace {

class KeyBuilder {
 public:
  KeyBuilder(GrammarBuilder& builder, NodeId next)
      : builder_(builder), close_(builder.literal("\"", next)) {
    constexpr GrammarBuilder::CodePoints kPlain[] = {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x10FFFF}};
    any_ = builder.repeat([&](NodeId after) { return builder.code_points(kPlain, after); }, 0, -1,
                          close_);
  }

  // What may follow a beginning that all of `rests` go on from.
  NodeId other_than(const std::vector<std::u32string_view>& rests, int depth) {
    std::vector<NodeId> ways;
    std::map<char32_t, std::vector<std::u32string_view>> onwards;
    bool is_name = false;
    for (const std::u32string_view rest : rests) {
      if (rest.empty()) {
        is_name = true;
      } else {
        onwards[rest.front()].push_back(rest.substr(1));
      }
    }
    if (!is_name) ways.push_back(close_);
    std::vector<GrammarBuilder::CodePoints> taken = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
    for (const auto& [c, further] : onwards) {
      taken.push_back({c, c});
      const bool plain = c >= 0x20 && c != '"' && c != '\\';
      const GrammarBuilder::CodePoints one[] = {{c, c}};
      // Beyond some length a key that begins like a name is left out.
      if (plain && depth < kMostDepth) {
        ways.push_back(builder_.code_points(one, other_than(further, depth + 1)));
      }
    }
    const auto others = complement(std::move(taken));
    ways.push_back(builder_.code_points(others, any_));
    return builder_.either(ways);
  }

 private:
  static constexpr int kMostDepth = 256;

  GrammarBuilder& builder_;
  NodeId close_;
  NodeId any_ = 0;
};

std::u32string decode(std::string_view text) {
  std::u32string points;
  for (std::size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    char32_t value = length == 1 ? lead : lead & (0x7FU >> length);
    for (std::size_t i = 1; i < length && at + i < text.size(); ++i) {
      value = value << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3FU);
    }
    points.push_back(value);
    at += length;
  }
  return points;
}

}  // namespace

NodeId key_other_than(GrammarBuilder& builder, const std::vector<std::string>& names, NodeId next) {
  if (next == GrammarBuilder::kNothing) return next;
  std::vector<std::u32string> decoded;
  decoded.reserve(names.size());
  for (const std::string& name : names) decoded.push_back(decode(name));
  const std::vector<std::u32string_view> rests(decoded.begin(), decoded.end());
  return builder.literal("\"", KeyBuilder(builder, next).other_than(rests, 0));
}

}  // namespace edgerunner
