#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace edgerunner {

// A regular expression of a pre-tokenizer, in the dialect in which tokenizer.json files state it
// (Oniguruma's), compiled by PCRE2. Immutable; a Matcher holds what a search writes to.
class Expression {
 public:
  // Throws std::logic_error where the pattern, which is the program's own, doesn't compile.
  explicit Expression(std::string_view pattern);
  Expression(Expression&&) noexcept;
  ~Expression();

  struct Range {
    std::size_t begin;
    std::size_t end;
  };

  class Matcher {
   public:
    Matcher();
    ~Matcher();
    Matcher(const Matcher&) = delete;
    Matcher& operator=(const Matcher&) = delete;

   private:
    friend class Expression;
    struct State;
    std::unique_ptr<State> state_;
  };

  // The first match in `subject`, which must be valid UTF-8, at `from` or later; `begin` is
  // subject.size() where there is none. Throws Error(invalid_argument) where the search hits a
  // limit, Error(out_of_memory) where it gets no memory.
  Range find(Matcher& matcher, std::string_view subject, std::size_t from) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace edgerunner
