#include "constraint/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "edgerunner/error.h"

namespace edgerunner {
namespace {

using CodePoints = GrammarBuilder::CodePoints;
using Ranges = std::vector<CodePoints>;

constexpr int kMostNesting = 100;
constexpr std::int64_t kMostRepetitions = 10'000;

struct Part;
using Sequence = std::vector<Part>;
struct Part {
  Ranges characters;  // where there are no alternatives
  std::vector<Sequence> group;
  bool is_group = false;
  std::int64_t least = 1;
  std::int64_t most = 1;  // negative: without limit
};

struct Alternative {
  Sequence parts;
  bool at_front = false;
  bool at_end = false;
};

class Parser {
 public:
  explicit Parser(std::string_view pattern) : pattern_(pattern) {}

  std::vector<Alternative> run() {
    std::vector<Alternative> result;
    do {
      Alternative made;
      made.at_front = take('^');
      made.parts = sequence(0);
      made.at_end = take('$');
      result.push_back(std::move(made));
    } while (take('|'));
    if (at_ < pattern_.size()) fail(fmt::format("'{}' can't stand there", pattern_[at_]));
    return result;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw Error(ErrorCode::invalid_argument, fmt::format("pattern \"{}\": {}", pattern_, what));
  }

  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0';
  }
  bool take(char c) {
    if (at_ >= pattern_.size() || pattern_[at_] != c) return false;
    ++at_;
    return true;
  }

  Sequence sequence(int depth) {
    if (depth > kMostNesting) fail("groups nest too deeply");
    Sequence parts;
    while (at_ < pattern_.size() && peek() != '|' && peek() != ')' && peek() != '$') {
      Part part = atom(depth);
      quantifier(part);
      parts.push_back(std::move(part));
    }
    return parts;
  }

  Part atom(int depth) {
    Part part;
    const char c = peek();
    if (c == '(') {
      ++at_;
      if (peek() == '?') {
        if (peek(1) != ':') fail("groups that look around or have names can't be enforced");
        at_ += 2;
      }
      part.is_group = true;
      do {
        part.group.push_back(sequence(depth + 1));
      } while (take('|'));
      if (!take(')')) fail("a ')' is missing, or an anchor stands inside a group");
    } else if (c == '[') {
      ++at_;
      part.characters = character_class();
    } else if (c == '.') {
      ++at_;
      part.characters = complement({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}});
    } else if (c == '\\') {
      ++at_;
      part.characters = escape();
    } else if (c == '*' || c == '+' || c == '?' || c == '{' || c == '^') {
      fail(fmt::format("'{}' can't stand there", c));
    } else {
      const char32_t point = code_point();
      part.characters = {{point, point}};
    }
    return part;
  }

  void quantifier(Part& part) {
    if (take('*')) {
      part.least = 0;
      part.most = -1;
    } else if (take('+')) {
      part.most = -1;
    } else if (take('?')) {
      part.least = 0;
    } else if (take('{')) {
      part.least = number();
      part.most = part.least;
      if (take(',')) part.most = peek() == '}' ? -1 : number();
      if (!take('}')) fail("a '}' is missing");
      if (part.most >= 0 && part.most < part.least) fail("a quantifier is upside down");
    } else {
      return;
    }
    if (take('?')) return;  // lazy: the same texts
    const char next = peek();
    if (next == '*' || next == '+' || next == '{') fail("two quantifiers follow one another");
  }

  std::int64_t number() {
    std::int64_t value = 0;
    const auto result =
        std::from_chars(pattern_.data() + at_, pattern_.data() + pattern_.size(), value);
    if (result.ec != std::errc{} || value < 0 || value > kMostRepetitions) {
      fail(fmt::format("a quantifier must be from 0 to {}", kMostRepetitions));
    }
    at_ = static_cast<std::size_t>(result.ptr - pattern_.data());
    return value;
  }

  char32_t code_point() {
    const auto lead = static_cast<unsigned char>(pattern_[at_]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    char32_t value = length == 1 ? lead : lead & (0x7FU >> length);
    for (std::size_t i = 1; i < length; ++i) {
      value = value << 6 | (static_cast<unsigned char>(pattern_[at_ + i]) & 0x3FU);
    }
    at_ += length;
    return value;
  }

  char32_t hexadecimal(std::size_t digits) {
    const std::string_view text = pattern_.substr(at_, digits);
    std::uint32_t value = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (text.size() != digits || result.ptr != text.data() + digits ||
        (value >= 0xD800 && value <= 0xDFFF)) {
      fail("an escape is no character");
    }
    at_ += digits;
    return value;
  }

  // Behind a backslash.
  Ranges escape() {
    if (at_ >= pattern_.size()) fail("a backslash stands at the end");
    const char c = pattern_[at_];
    const auto one = [this](char32_t point) {
      ++at_;
      return Ranges{{point, point}};
    };
    switch (c) {
      case 'd':
        ++at_;
        return {{'0', '9'}};
      case 'D':
        ++at_;
        return {{0x20, '0' - 1}, {'9' + 1, 0x7E}};
      case 'w':
        ++at_;
        return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
      case 'W':
        ++at_;
        return {{0x20, '0' - 1}, {'9' + 1, 'A' - 1}, {'Z' + 1, '_' - 1}, {'`', '`'}, {'{', 0x7E}};
      case 's':
        ++at_;
        return {{'\t', '\r'}, {' ', ' '}};
      case 'S':
        ++at_;
        return {{0x21, 0x7E}};
      case 'n':
        return one('\n');
      case 'r':
        return one('\r');
      case 't':
        return one('\t');
      case 'f':
        return one('\f');
      case 'v':
        return one('\v');
      case '0':
        return one(0);
      case 'x':
      case 'u': {
        ++at_;
        const char32_t point = hexadecimal(c == 'x' ? 2 : 4);
        return {{point, point}};
      }
      default:
        break;
    }
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '1' && c <= '9');
    if (letter) fail(fmt::format("'\\{}' can't be enforced", c));
    const char32_t point = code_point();
    return {{point, point}};
  }

  Ranges character_class() {
    const bool negated = take('^');
    Ranges ranges;
    bool narrow = false;  // \D and its like: narrower than they are, so not to be negated
    while (!take(']')) {
      if (at_ >= pattern_.size()) fail("a ']' is missing");
      if (negated && peek() == '\\' &&
          std::string_view("DWSdws").find(peek(1)) != std::string_view::npos) {
        narrow = true;
      }
      const bool escaped = take('\\');
      if (escaped && peek() == 'b') fail("'\\b' can't be enforced");
      const char32_t plain = escaped ? 0 : code_point();
      Ranges first = escaped ? escape() : Ranges{{plain, plain}};
      const bool single = first.size() == 1 && first[0].first == first[0].last;
      if (single && peek() == '-' && peek(1) != ']' && peek(1) != '\0') {
        ++at_;
        const Ranges last = end_of_range();
        if (last.size() != 1 || last[0].first != last[0].last || last[0].first < first[0].first) {
          fail("a range of characters is upside down");
        }
        first[0].last = last[0].first;
      }
      ranges.insert(ranges.end(), first.begin(), first.end());
    }
    if (!negated) return ranges;
    // What \d, \w and \s hold beyond ASCII depends on the reader: only ASCII is sure.
    if (narrow) {
      ranges.push_back({0x7F, 0x10FFFF});
      ranges.push_back({0, 0x1F});
    }
    return complement(std::move(ranges));
  }

  Ranges end_of_range() {
    if (take('\\')) return escape();
    const char32_t point = code_point();
    return {{point, point}};
  }

  std::string_view pattern_;
  std::size_t at_ = 0;
};

class Compiler {
 public:
  Compiler(GrammarBuilder& builder, JsonGrammar& json) : builder_(builder), json_(json) {}

  NodeId alternative(const Alternative& way, NodeId next) {
    const auto any = [this](NodeId after) { return json_.character(after); };
    if (!way.at_end) next = builder_.repeat(any, 0, -1, next);
    next = sequence(way.parts, next);
    return way.at_front ? next : builder_.repeat(any, 0, -1, next);
  }

 private:
  NodeId sequence(const Sequence& parts, NodeId next) {
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      next = builder_.repeat([&](NodeId after) { return once(*part, after); }, part->least,
                             part->most, next);
    }
    return next;
  }

  NodeId once(const Part& part, NodeId next) {
    if (!part.is_group) return characters(part.characters, next);
    std::vector<NodeId> ways;
    for (const Sequence& parts : part.group) ways.push_back(sequence(parts, next));
    return builder_.either(ways);
  }

  // One character of the ranges as JSON writes it: escaped where it must be, and only there.
  NodeId characters(const Ranges& ranges, NodeId next) {
    std::vector<NodeId> ways;
    Ranges plain;
    for (const CodePoints& range : ranges) {
      for (char32_t c = range.first; c <= range.last && c < 0x20; ++c) {
        ways.push_back(builder_.literal(control(c), next));
      }
      for (const char special : {'"', '\\'}) {
        const auto c = static_cast<char32_t>(special);
        if (range.first <= c && c <= range.last) {
          ways.push_back(builder_.literal(std::string("\\") + special, next));
        }
      }
      for (const CodePoints& allowed : Ranges{{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x10FFFF}}) {
        const CodePoints both = {std::max(range.first, allowed.first),
                                 std::min(range.last, allowed.last)};
        if (both.first <= both.last) plain.push_back(both);
      }
    }
    ways.push_back(builder_.code_points(plain, next));
    return builder_.either(ways);
  }

  static std::string control(char32_t c) {
    switch (c) {
      case '\b':
        return "\\b";
      case '\f':
        return "\\f";
      case '\n':
        return "\\n";
      case '\r':
        return "\\r";
      case '\t':
        return "\\t";
      default:
        return fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    }
  }

  GrammarBuilder& builder_;
  JsonGrammar& json_;
};

}  // namespace

NodeId string_matching(GrammarBuilder& builder, JsonGrammar& json, std::string_view pattern,
                       NodeId next) {
  Compiler compiler(builder, json);
  std::vector<NodeId> ways;
  for (const Alternative& way : Parser(pattern).run()) {
    ways.push_back(compiler.alternative(way, next));
  }
  return builder.either(ways);
}

}  // namespace edgerunner
