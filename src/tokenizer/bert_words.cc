#include "tokenizer/bert_words.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "tokenizer/normalize.h"
#include "tokenizer/utf8.h"

namespace edgerunner {
namespace {

using CodePoints = std::vector<std::int32_t>;

constexpr std::int32_t kReplacement = 0xFFFD;

// Han, as Hugging Face's library has it. (U+2B820 to U+2B91F are missing there, but not in BERT's
// own code: no vocabulary is known to have them.)
bool is_chinese(std::int32_t c) {
  struct Range {
    std::int32_t first;
    std::int32_t last;
  };
  constexpr std::array<Range, 8> kRanges = {{{0x3400, 0x4DBF},
                                             {0x4E00, 0x9FFF},
                                             {0xF900, 0xFAFF},
                                             {0x20000, 0x2A6DF},
                                             {0x2A700, 0x2B73F},
                                             {0x2B740, 0x2B81F},
                                             {0x2B920, 0x2CEAF},
                                             {0x2F800, 0x2FA1F}}};
  return c >= kRanges[0].first && std::any_of(kRanges.begin(), kRanges.end(), [c](Range range) {
           return c >= range.first && c <= range.last;
         });
}

bool is_white_space(std::int32_t c, utf8proc_category_t category) {
  return c == '\t' || c == '\n' || c == '\r' || category == UTF8PROC_CATEGORY_ZS ||
         category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

bool is_left_out(std::int32_t c, utf8proc_category_t category) {
  return c == kReplacement || category == UTF8PROC_CATEGORY_CC ||
         category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CO;
}

bool is_punctuation(std::int32_t c) {
  if (c < 0x80) {  // all that prints, neither letter nor digit: with $, +, <, =, >, ^, `, | and ~
    return (c > ' ' && c < '0') || (c > '9' && c < 'A') || (c > 'Z' && c < 'a') ||
           (c > 'z' && c < 0x7F);
  }
  const utf8proc_category_t category = utf8proc_category(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

// With white space as single spaces, Chinese characters between spaces, and without what is left
// out.
CodePoints clean(std::string_view text) {
  CodePoints result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Unit unit = first_utf8_unit(text.substr(at));
    const auto c = unit.kind == Utf8Unit::Kind::character
                       ? static_cast<std::int32_t>(utf8_code_point(&text[at], unit.length))
                       : kReplacement;
    at += unit.length;
    const utf8proc_category_t category = utf8proc_category(c);
    if (is_white_space(c, category)) {
      result.push_back(' ');
    } else if (is_chinese(c)) {
      result.insert(result.end(), {' ', c, ' '});
    } else if (!is_left_out(c, category)) {
      result.push_back(c);
    }
  }
  return result;
}

CodePoints without_accents(const CodePoints& code_points) {
  CodePoints result = to_nfd(code_points);
  std::erase_if(result,
                [](std::int32_t c) { return utf8proc_category(c) == UTF8PROC_CATEGORY_MN; });
  return result;
}

}  // namespace

std::string bert_words(std::string_view text, BertCase letters) {
  CodePoints code_points = clean(text);
  if (letters == BertCase::uncased) {
    code_points = without_accents(code_points);
    std::transform(code_points.begin(), code_points.end(), code_points.begin(), utf8proc_tolower);
  }
  std::string words;
  words.reserve(text.size() + text.size() / 4);
  for (const std::int32_t c : code_points) {
    const bool alone = is_punctuation(c);
    if (alone) words += ' ';
    append_utf8(words, static_cast<char32_t>(c));
    if (alone) words += ' ';
  }
  return words;
}

}  // namespace edgerunner
