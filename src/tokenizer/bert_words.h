#pragma once

#include <string>
#include <string_view>

namespace edgerunner {

// How BERT changes a text's letters.
enum class BertCase {
  cased,    // not at all
  uncased,  // small letters without accents
};

// The words of `text` as BERT's tokenizer divides it, in valid UTF-8, with spaces between them and
// perhaps at the ends: white space divides, and a mark of punctuation or a Chinese character is a
// word of its own. Control and format characters, private ones and bytes that aren't UTF-8 are left
// out. O(n log n) for any text.
std::string bert_words(std::string_view text, BertCase letters);

}  // namespace edgerunner
