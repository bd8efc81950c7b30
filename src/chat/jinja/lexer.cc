#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "chat/jinja/token.h"
#include "chat/jinja/unicode.h"

namespace edgerunner::jinja {
namespace {

constexpr auto kNone = std::string_view::npos;

class Lexer {
 public:
  explicit Lexer(const Source& source) : source_(source), text_(source.text()) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) data();
    put(TokenType::end, text_.size(), "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(std::size_t offset, std::string_view what) const {
    throw source_.error(ErrorCode::invalid_file, offset, what);
  }

  void put(TokenType type, std::size_t offset, std::string_view text) {
    tokens_.push_back({.type = type, .offset = offset, .text = std::string(text)});
  }

  bool looking_at(std::string_view what) const { return text_.substr(at_).starts_with(what); }

  void skip_space() {
    while (at_ < text_.size()) {
      const CodePoint c = code_point_at(text_, at_);
      if (!is_space(c.value)) return;
      at_ += c.length;
    }
  }

  // The sign of whitespace control after an opening delimiter.
  char take_sign() {
    if (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) return text_[at_++];
    return 0;
  }

  // Text up to the next tag, then the tag.
  void data() {
    const std::size_t begin = at_;
    std::size_t open = begin;
    for (;; ++open) {
      open = text_.find('{', open);
      if (open == kNone || open + 1 >= text_.size()) {
        emit_data(begin, text_.substr(begin));
        at_ = text_.size();
        return;
      }
      if (const char c = text_[open + 1]; c == '{' || c == '%' || c == '#') break;
    }
    const char kind = text_[open + 1];
    const bool line_starting = line_starting_;
    at_ = open + 2;
    const char sign = take_sign();
    emit_data(begin, trimmed(text_.substr(begin, open - begin), sign, kind != '{', line_starting));
    if (kind == '#') {
      comment(open);
    } else if (kind == '%' && raw_begins()) {
      raw(open);
    } else {
      tag(open, kind == '{');
    }
  }

  void emit_data(std::size_t offset, std::string_view text) {
    if (!text.empty()) put(TokenType::data, offset, text);
  }

  // Whitespace in front of a tag: "-" takes all of it, lstrip_blocks that of the tag's own line.
  static std::string_view trimmed(std::string_view text, char sign, bool block,
                                  bool line_starting) {
    if (sign == '-') return strip(text, false, true, is_space);
    if (sign == '+' || !block) return text;
    const std::size_t newline = text.rfind('\n');
    const std::size_t line = newline == kNone ? 0 : newline + 1;
    if (line == 0 && !line_starting) return text;
    return strip(text.substr(line), true, false, is_space).empty() ? text.substr(0, line) : text;
  }

  // The end of a comment or block: "+" keeps what follows, "-" takes all whitespace, else
  // trim_blocks takes one line end.
  bool take_end(std::string_view end) {
    const char sign = at_ < text_.size() ? text_[at_] : '\0';
    const bool signed_end = (sign == '+' || sign == '-') && text_.substr(at_ + 1).starts_with(end);
    if (!signed_end && !looking_at(end)) return false;
    at_ += end.size() + (signed_end ? 1 : 0);
    if (signed_end && sign == '-') skip_space();
    if (!signed_end && at_ < text_.size() && text_[at_] == '\n') ++at_;
    line_starting_ = text_[at_ - 1] == '\n';
    return true;
  }

  void comment(std::size_t open) {
    while (at_ < text_.size()) {
      if (take_end("#}")) return;
      ++at_;
    }
    fail(open, "this comment has no end");
  }

  // Whether "{%" is followed by "raw %}"; takes it if so.
  bool raw_begins() {
    const std::size_t start = at_;
    skip_space();
    if (looking_at("raw")) {
      at_ += 3;
      skip_space();
      if (looking_at("-%}")) {
        at_ += 3;
        skip_space();
        line_starting_ = text_[at_ - 1] == '\n';
        return true;
      }
      if (looking_at("%}")) {
        at_ += 2;
        line_starting_ = false;
        return true;
      }
    }
    at_ = start;
    return false;
  }

  void raw(std::size_t open) {
    const std::size_t begin = at_;
    const bool line_starting = line_starting_;
    for (std::size_t end = begin; (end = text_.find("{%", end)) != kNone; end += 2) {
      at_ = end + 2;
      const char sign = take_sign();
      skip_space();
      if (!looking_at("endraw")) continue;
      at_ += 6;
      skip_space();
      if (!take_end("%}")) continue;
      emit_data(begin, trimmed(text_.substr(begin, end - begin), sign, true, line_starting));
      return;
    }
    fail(open, "this raw block has no end");
  }

  void tag(std::size_t open, bool variable) {
    put(variable ? TokenType::variable_begin : TokenType::block_begin, open, "");
    brackets_.clear();
    while (true) {
      if (at_ >= text_.size()) return;  // the parser says what is missing
      const std::size_t begin = at_;
      if (brackets_.empty() && (variable ? take_variable_end() : take_end("%}"))) {
        put(variable ? TokenType::variable_end : TokenType::block_end, begin, "");
        return;
      }
      const CodePoint c = code_point_at(text_, at_);
      if (is_space(c.value)) {
        at_ += c.length;
      } else if (c.value >= '0' && c.value <= '9') {
        number();
      } else if (is_word(c.value)) {
        word();
      } else if (c.value == '"' || c.value == '\'') {
        string();
      } else {
        symbol();
      }
    }
  }

  bool take_variable_end() {
    const bool strips = looking_at("-}}");
    if (!strips && !looking_at("}}")) return false;
    at_ += strips ? 3 : 2;
    if (strips) skip_space();
    line_starting_ = text_[at_ - 1] == '\n';
    return true;
  }

  void word() {
    const std::size_t begin = at_;
    while (at_ < text_.size()) {
      const CodePoint c = code_point_at(text_, at_);
      if (!is_word(c.value)) break;
      at_ += c.length;
    }
    put(TokenType::name, begin, text_.substr(begin, at_ - begin));
  }

  // Digits with single underscores between them; how many characters, from `from`.
  template <typename IsDigit>
  std::size_t digits(std::size_t from, IsDigit is_digit_char) const {
    std::size_t end = from;
    while (end < text_.size()) {
      if (is_digit_char(text_[end])) {
        ++end;
      } else if (end > from && text_[end] == '_' && end + 1 < text_.size() &&
                 is_digit_char(text_[end + 1])) {
        end += 2;
      } else {
        break;
      }
    }
    return end - from;
  }

  static bool is_decimal_digit(char c) { return c >= '0' && c <= '9'; }

  void number() {
    const std::size_t begin = at_;
    const bool after_dot = begin > 0 && text_[begin - 1] == '.';
    const std::size_t whole = digits(begin, is_decimal_digit);
    std::size_t end = begin + whole;
    bool floating = false;
    if (end < text_.size() && text_[end] == '.') {
      if (const std::size_t fraction = digits(end + 1, is_decimal_digit); fraction > 0) {
        end += 1 + fraction;
        floating = true;
      }
    }
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      std::size_t exponent = end + 1;
      if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) {
        ++exponent;
      }
      if (const std::size_t count = digits(exponent, is_decimal_digit); count > 0) {
        end = exponent + count;
        floating = true;
      }
    }
    if (floating && !after_dot) return put_float(begin, end);
    put_integer(begin, whole);
  }

  static std::string without_underscores(std::string_view text) {
    std::string plain;
    for (const char c : text) {
      if (c != '_') plain.push_back(c);
    }
    return plain;
  }

  void put_float(std::size_t begin, std::size_t end) {
    const std::string plain = without_underscores(text_.substr(begin, end - begin));
    double value = 0;
    const auto result = std::from_chars(plain.data(), plain.data() + plain.size(), value);
    // Beyond the range: infinity or zero, as strtod and Python have it.
    if (result.ec == std::errc::result_out_of_range) value = std::strtod(plain.c_str(), nullptr);
    put(TokenType::floating, begin, plain);
    tokens_.back().floating = value;
    at_ = end;
  }

  void put_integer(std::size_t begin, std::size_t whole) {
    std::size_t length = whole;
    std::size_t prefix = 0;
    int base = 10;
    if (text_[begin] == '0' && begin + 1 < text_.size()) {
      const char kind = static_cast<char>(text_[begin + 1] | 0x20);
      base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
      const auto is_digit_char = [base](char c) {
        const int value = is_decimal_digit(c)                      ? c - '0'
                          : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                                   : 99;
        return value < base;
      };
      std::size_t from = begin + 2;
      if (base != 10 && from < text_.size() && text_[from] == '_') ++from;
      const std::size_t count = base == 10 ? 0 : digits(from, is_digit_char);
      if (count > 0) {
        prefix = 2;
        length = from - begin + count;
      } else {  // zeros, as many as there are
        base = 10;
        length = digits(begin, [](char c) { return c == '0'; });
      }
    }
    const std::string plain = without_underscores(text_.substr(begin, length));
    std::int64_t value = 0;
    const auto result =
        std::from_chars(plain.data() + prefix, plain.data() + plain.size(), value, base);
    if (result.ec == std::errc::result_out_of_range) {
      throw source_.error(ErrorCode::unsupported, begin, "integers beyond 64 bits");
    }
    put(TokenType::integer, begin, plain);
    tokens_.back().integer = value;
    at_ = begin + length;
  }

  void string() {
    const std::size_t begin = at_;
    const char quote = text_[at_++];
    std::string value;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        ++at_;
        escape(value);
      } else {
        value.push_back(text_[at_++]);
      }
    }
    if (at_ >= text_.size()) fail(begin, "this string has no end");
    ++at_;
    put(TokenType::string, begin, value);
  }

  // An escape of Python's string literals, from behind the backslash; unknown ones stay as they
  // are.
  void escape(std::string& value) {
    constexpr std::string_view kLetters = "abfnrtv\\'\"";
    constexpr std::string_view kValues = "\a\b\f\n\r\t\v\\'\"";
    const char c = text_[at_];
    if (const std::size_t index = kLetters.find(c); index != kNone) {
      value.push_back(kValues[index]);
      ++at_;
    } else if (c == '\n') {
      ++at_;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      ++at_;
      code_point(value, c == 'x' ? 2 : c == 'u' ? 4 : 8, 16);
    } else if (c >= '0' && c <= '7') {
      std::size_t count = 1;
      while (count < 3 && at_ + count < text_.size() && text_[at_ + count] >= '0' &&
             text_[at_ + count] <= '7') {
        ++count;
      }
      code_point(value, count, 8);
    } else if (c == 'N') {
      throw source_.error(ErrorCode::unsupported, at_ - 1, "characters by name (\\N{...})");
    } else {
      value.push_back('\\');
    }
  }

  void code_point(std::string& value, std::size_t count, int base) {
    const std::string_view digits_text = text_.substr(at_, count);
    std::uint32_t point = 0;
    const char* const end = digits_text.data() + digits_text.size();
    const auto result = std::from_chars(digits_text.data(), end, point, base);
    if (digits_text.size() != count || result.ec != std::errc{} || result.ptr != end) {
      fail(at_, "this escape needs more digits");
    }
    if (point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) {
      fail(at_, "this escape is no character");
    }
    const auto c = static_cast<char32_t>(point);
    value += encode({&c, 1});
    at_ += count;
  }

  void symbol() {
    constexpr std::array<std::string_view, 26> kSymbols = {
        "//", "**", "==", "!=", "<=", ">=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  "<",  ">", "=", ".", ":", "|", ",", ";"};
    for (const std::string_view symbol : kSymbols) {
      if (!looking_at(symbol)) continue;
      balance(symbol[0]);
      put(TokenType::symbol, at_, symbol);
      at_ += symbol.size();
      return;
    }
    const CodePoint c = code_point_at(text_, at_);
    fail(at_, fmt::format("unexpected character '{}'", text_.substr(at_, c.length)));
  }

  // A tag ends only outside brackets.
  void balance(char c) {
    if (c == '{') brackets_.push_back('}');
    if (c == '(') brackets_.push_back(')');
    if (c == '[') brackets_.push_back(']');
    if (c != '}' && c != ')' && c != ']') return;
    if (brackets_.empty()) fail(at_, fmt::format("unexpected '{}'", c));
    if (brackets_.back() != c) {
      fail(at_, fmt::format("unexpected '{}', expected '{}'", c, brackets_.back()));
    }
    brackets_.pop_back();
  }

  const Source& source_;
  std::string_view text_;
  std::size_t at_ = 0;
  bool line_starting_ = true;  // what was read last ends a line
  std::string brackets_;       // closing brackets that are owed
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(const Source& source) { return Lexer(source).run(); }

}  // namespace edgerunner::jinja
