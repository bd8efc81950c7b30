#include "constraint/gbnf.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>

#include "base/utf8.h"
#include "edgerunner/error.h"

namespace edgerunner {
namespace {

constexpr int kMostNesting = 100;
constexpr std::int64_t kMostRepetitions = 100'000;

// An element of a rule, as parsed: the grammar is built from its end, so it is kept first.
struct Element {
  enum class Kind { characters, rule, group };
  Kind kind = Kind::characters;
  std::string text;                                // a rule's name
  std::vector<GrammarBuilder::CodePoints> ranges;  // characters
  std::vector<std::vector<Element>> alternatives;  // a group
  std::int64_t least = 1;
  std::int64_t most = 1;  // negative: without limit
  std::size_t offset = 0;
};
using Sequence = std::vector<Element>;
using Alternatives = std::vector<Sequence>;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::map<std::string, Alternatives> run() {
    std::map<std::string, Alternatives> rules;
    skip_space(true);
    while (at_ < text_.size()) {
      const std::size_t begin = at_;
      const std::string name = take_name();
      if (name.empty()) fail("the name of a rule is missing");
      skip_space(false);
      if (!take("::=")) fail("'::=' is missing behind the name of the rule");
      skip_space(true);
      Alternatives body = alternatives(0);
      if (!rules.emplace(name, std::move(body)).second) {
        at_ = begin;
        fail(fmt::format("the rule '{}' is there twice", name));
      }
      if (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != '\r') {
        fail(fmt::format("unexpected '{}'", text_[at_]));
      }
      skip_space(true);
    }
    return rules;
  }

  [[noreturn]] void fail(const std::string& what) const { fail_at(at_, what); }
  [[noreturn]] void fail_at(std::size_t offset, const std::string& what) const {
    const auto line =
        1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(offset), '\n');
    throw Error(ErrorCode::invalid_argument, fmt::format("grammar, line {}: {}", line, what));
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool take(std::string_view what) {
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }

  void skip_space(bool lines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string take_name() {
    const std::size_t begin = at_;
    const auto is_part = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '-' || c == '_';
    };
    while (at_ < text_.size() && is_part(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  Alternatives alternatives(int depth) {
    if (depth > kMostNesting) fail("groups nest too deeply");
    Alternatives result;
    while (true) {
      result.push_back(sequence(depth));
      if (peek() != '|') return result;
      ++at_;
      skip_space(true);
    }
  }

  // Elements up to the end of the line, but within brackets lines do not count.
  Sequence sequence(int depth) {
    Sequence elements;
    while (true) {
      if (depth > 0) skip_space(true);
      // A rule's alternatives may go on behind a line end where the next line begins with '|'.
      if (depth == 0) skip_to_alternative();
      const char c = peek();
      const std::size_t begin = at_;
      Element element;
      if (c == '"') {
        element = literal();
      } else if (c == '[') {
        element = characters();
      } else if (c == '.') {
        ++at_;
        element.kind = Element::Kind::characters;
        element.ranges = complement({});
      } else if (c == '(') {
        ++at_;
        element.kind = Element::Kind::group;
        element.alternatives = alternatives(depth + 1);
        if (!take(")")) fail("a ')' is missing");
      } else if (std::string name = take_name(); !name.empty()) {
        element.kind = Element::Kind::rule;
        element.text = std::move(name);
      } else {
        return elements;
      }
      element.offset = begin;
      repetition(element);
      elements.push_back(std::move(element));
      skip_space(false);
    }
  }

  void skip_to_alternative() {
    const std::size_t before = at_;
    skip_space(true);
    if (peek() != '|') at_ = before;
  }

  void repetition(Element& element) {
    const char c = peek();
    if (c == '*' || c == '+' || c == '?') {
      ++at_;
      element.least = c == '+' ? 1 : 0;
      element.most = c == '?' ? 1 : -1;
    } else if (c == '{') {
      ++at_;
      skip_space(false);
      element.least = number().value_or(0);
      element.most = element.least;
      skip_space(false);
      if (take(",")) {
        skip_space(false);
        element.most = number().value_or(-1);
        skip_space(false);
      }
      if (!take("}")) fail("a '}' is missing");
      if (element.most >= 0 && element.most < element.least) {
        fail("a repetition's upper limit is below its lower one");
      }
    }
  }

  std::optional<std::int64_t> number() {
    std::int64_t value = 0;
    const auto result = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (result.ec == std::errc::invalid_argument) return std::nullopt;
    if (result.ec != std::errc{} || value < 0 || value > kMostRepetitions) {
      fail(fmt::format("a repetition must be from 0 to {}", kMostRepetitions));
    }
    at_ = static_cast<std::size_t>(result.ptr - text_.data());
    return value;
  }

  // A character of a literal or class, escapes resolved.
  char32_t character() {
    if (at_ >= text_.size()) fail("the grammar ends inside quotes or brackets");
    const char c = text_[at_];
    if (c != '\\') return code_point();
    ++at_;
    const char kind = peek();
    ++at_;
    switch (kind) {
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'x':
        return hexadecimal(2);
      case 'u':
        return hexadecimal(4);
      case 'U':
        return hexadecimal(8);
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
      case '^':
        return static_cast<unsigned char>(kind);
      default:
        fail(fmt::format("unknown escape '\\{}'", kind));
    }
  }

  char32_t code_point() {
    const auto lead = static_cast<unsigned char>(text_[at_]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    char32_t value = length == 1 ? lead : lead & (0x7FU >> length);
    for (std::size_t i = 1; i < length; ++i) {
      value = value << 6 | (static_cast<unsigned char>(text_[at_ + i]) & 0x3FU);
    }
    at_ += length;
    return value;
  }

  char32_t hexadecimal(std::size_t digits) {
    std::uint32_t value = 0;
    const std::string_view text = text_.substr(at_, digits);
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (text.size() != digits || result.ptr != text.data() + digits || value > 0x10FFFF) {
      fail("an escape is no character");
    }
    at_ += digits;
    return value;
  }

  Element literal() {
    ++at_;
    Element element;
    element.kind = Element::Kind::group;  // of one sequence of characters
    element.alternatives.emplace_back();
    while (peek() != '"') {
      const char32_t c = character();
      Element part;
      part.kind = Element::Kind::characters;
      part.ranges = {{c, c}};
      element.alternatives.front().push_back(std::move(part));
    }
    ++at_;
    return element;
  }

  Element characters() {
    ++at_;
    Element element;
    element.kind = Element::Kind::characters;
    const bool negated = take("^");
    while (peek() != ']') {
      const char32_t first = character();
      char32_t last = first;
      if (peek() == '-' && text_.substr(at_ + 1, 1) != "]") {
        ++at_;
        last = character();
      }
      if (last < first) fail("a range of characters is upside down");
      element.ranges.push_back({first, last});
    }
    ++at_;
    if (negated) element.ranges = complement(std::move(element.ranges));
    return element;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

class Compiler {
 public:
  Compiler(const Parser& parser, const std::map<std::string, Alternatives>& rules)
      : parser_(parser), rules_(rules) {}

  Grammar run() {
    if (!rules_.contains("root")) {
      throw Error(ErrorCode::invalid_argument, "grammar: the rule 'root' is missing");
    }
    for (const auto& [name, body] : rules_) nodes_[name] = builder_.reserve();
    for (const auto& [name, body] : rules_) {
      builder_.define(nodes_[name], alternatives(body, GrammarBuilder::kEnd));
    }
    return builder_.finish(nodes_["root"]);
  }

 private:
  NodeId alternatives(const Alternatives& all, NodeId next) {
    std::vector<NodeId> ways;
    for (const Sequence& elements : all) {
      NodeId way = next;
      for (auto element = elements.rbegin(); element != elements.rend(); ++element) {
        way = builder_.repeat([&](NodeId after) { return once(*element, after); }, element->least,
                              element->most, way);
      }
      ways.push_back(way);
    }
    return builder_.either(ways);
  }

  NodeId once(const Element& element, NodeId next) {
    switch (element.kind) {
      case Element::Kind::characters:
        return builder_.code_points(element.ranges, next);
      case Element::Kind::group:
        return alternatives(element.alternatives, next);
      case Element::Kind::rule: {
        const auto found = nodes_.find(element.text);
        if (found == nodes_.end()) {
          parser_.fail_at(element.offset, fmt::format("there is no rule '{}'", element.text));
        }
        return builder_.call(found->second, next);
      }
    }
    return next;
  }

  const Parser& parser_;
  const std::map<std::string, Alternatives>& rules_;
  GrammarBuilder builder_;
  std::map<std::string, NodeId> nodes_;
};

}  // namespace

Grammar parse_gbnf(std::string_view text) {
  if (!is_utf8(text)) throw Error(ErrorCode::invalid_argument, "grammar: not valid UTF-8");
  Parser parser(text);
  const std::map<std::string, Alternatives> rules = parser.run();
  return Compiler(parser, rules).run();
}

}  // namespace edgerunner
