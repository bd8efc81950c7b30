#include "tokenizer/expression.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <array>
#include <new>
#include <stdexcept>

#include "edgerunner/error.h"
#include "tokenizer/unicode_additions.h"

namespace edgerunner {
namespace {

// White space as Oniguruma and Rust have it: Unicode's White_Space. PCRE2's own \s also takes
// U+180E.
constexpr std::string_view kSpaces =
    "\\x09-\\x0D\\x20\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}"
    "\\x{3000}";

// The JIT keeps the positions to return to on a stack of its own: the default is 32 KiB of the
// thread's. These expressions need a few hundred bytes, whatever the text; the limit is address
// space, taken only when used.
constexpr std::size_t kJitStackStart = std::size_t{16} << 10;
constexpr std::size_t kJitStackLimit = std::size_t{1} << 20;

// Puts what is meant in the place of \s, \S and \p{...}.
std::string to_pcre2(std::string_view pattern) {
  std::string result;
  bool in_class = false;
  const auto put_class = [&](std::string_view negation, std::string_view members) {
    result += in_class ? std::string(members) : fmt::format("[{}{}]", negation, members);
  };
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c != '\\' || i + 1 == pattern.size()) {
      if (c == '[') in_class = true;
      if (c == ']') in_class = false;
      result += c;
      continue;
    }
    const char escaped = pattern[++i];
    if (escaped == 's' || escaped == 'S') {
      put_class(escaped == 'S' ? "^" : "", kSpaces);
    } else if (escaped == 'p') {
      const std::size_t end = pattern.find('}', i);
      const std::string_view category = pattern.substr(i + 2, end - i - 2);
      put_class("", fmt::format("\\p{{{}}}{}", category, unicode_additions(category)));
      i = end;
    } else {
      result += {'\\', escaped};
    }
  }
  return result;
}

std::string message(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

template <auto release>
struct Releaser {
  template <typename T>
  void operator()(T* object) const {
    release(object);
  }
};

}  // namespace

struct Expression::State {
  std::string pattern;
  std::unique_ptr<pcre2_code, Releaser<pcre2_code_free>> code;
};

struct Expression::Matcher::State {
  std::unique_ptr<pcre2_match_data, Releaser<pcre2_match_data_free>> data;
  std::unique_ptr<pcre2_jit_stack, Releaser<pcre2_jit_stack_free>> stack;
  std::unique_ptr<pcre2_match_context, Releaser<pcre2_match_context_free>> context;
};

Expression::Matcher::Matcher() : state_(std::make_unique<State>()) {
  state_->data.reset(pcre2_match_data_create(1, nullptr));
  state_->stack.reset(pcre2_jit_stack_create(kJitStackStart, kJitStackLimit, nullptr));
  state_->context.reset(pcre2_match_context_create(nullptr));
  if (!state_->data || !state_->context) throw std::bad_alloc();
  // Without JIT there is no stack, and the interpreter needs none.
  if (state_->stack) pcre2_jit_stack_assign(state_->context.get(), nullptr, state_->stack.get());
}

Expression::Matcher::~Matcher() = default;

Expression::Expression(std::string_view pattern) : state_(std::make_unique<State>()) {
  state_->pattern = pattern;
  const std::string translated = to_pcre2(pattern);
  const std::unique_ptr<pcre2_compile_context, Releaser<pcre2_compile_context_free>> context(
      pcre2_compile_context_create(nullptr));
  if (!context) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  std::size_t offset = 0;
  // MULTILINE: Oniguruma's $ also matches before each newline.
  state_->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()),
                                   translated.size(), PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE,
                                   &error, &offset, context.get()));
  if (!state_->code) {
    throw std::logic_error(
        fmt::format("expression {} at {}: {}", translated, offset, message(error)));
  }
  // Where the system forbids generated code, pcre2_match interprets the expression instead.
  pcre2_jit_compile(state_->code.get(), PCRE2_JIT_COMPLETE);
}

Expression::Expression(Expression&&) noexcept = default;
Expression::~Expression() = default;

Expression::Range Expression::find(Matcher& matcher, std::string_view subject,
                                   std::size_t from) const {
  const int result = pcre2_match(state_->code.get(), reinterpret_cast<PCRE2_SPTR>(subject.data()),
                                 subject.size(), from, PCRE2_NO_UTF_CHECK,
                                 matcher.state_->data.get(), matcher.state_->context.get());
  if (result == PCRE2_ERROR_NOMATCH) return {subject.size(), subject.size()};
  if (result < 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the pre-tokenizer's expression {} gave up on the text ({}); encode it "
                            "in smaller parts",
                            state_->pattern, message(result)));
  }
  const std::size_t* bounds = pcre2_get_ovector_pointer(matcher.state_->data.get());
  return {bounds[0], bounds[1]};
}

}  // namespace edgerunner
