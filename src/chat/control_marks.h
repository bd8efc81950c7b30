#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "edgerunner/tokenizer.h"

namespace edgerunner {

// Keeps people from writing control tokens into a prompt. Within each spelling of one in what a
// template is given, a mark is put: a character that stands nowhere else. The template carries it
// along like any other, and it is taken out of what the template made, which leaves the places that
// are plain text whatever they spell.
class ControlMarks {
 public:
  using Json = nlohmann::ordered_json;

  explicit ControlMarks(const Tokenizer& tokenizer);

  // Whether a string of the value, at any depth, spells a control token.
  bool spells(const Json& value) const;

  // The value with marks in all its strings. Messages of the assistant keep <think> and </think>,
  // which templates look for.
  Json put(const Json& value, std::string_view mark) const;

  // A character, in UTF-8, that the text doesn't have. Throws Error(invalid_argument) where it has
  // tens of thousands of different ones.
  static std::string mark_for(std::string_view text);

  struct Text {
    std::string text;                // without marks
    std::vector<std::size_t> plain;  // offsets into it, as EncodeOptions::plain
  };
  static Text take(std::string_view rendered, std::string_view mark);

 private:
  // The length of the longest control token that is spelt at `at`, or 0.
  std::size_t spelled(std::string_view text, std::size_t at) const;
  std::string put_into(std::string_view text, std::string_view mark, bool of_assistant) const;
  Json put(const Json& value, std::string_view mark, bool of_assistant) const;

  std::set<std::string, std::less<>> spellings_;
  std::set<std::size_t, std::greater<>> lengths_;
  std::string first_bytes_;  // of spellings
};

}  // namespace edgerunner
