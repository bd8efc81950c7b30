#pragma once

#include <string>
#include <string_view>

#include "gguf/file.h"
#include "tokenizer/charsmap.h"

namespace edgerunner {

// What SentencePiece does to a text before its unigram model sees it: the rules of the character
// map, the longest first; a space in front (tokenizer.ggml.add_space_prefix, true where absent);
// no spaces at either end nor more than one between (tokenizer.ggml.remove_extra_whitespaces,
// false where absent); spaces written U+2581.
class UnigramNormalizer {
 public:
  explicit UnigramNormalizer(const gguf::File& file);

  // Valid UTF-8 whatever `text` is: a byte that isn't becomes U+FFFD. Throws
  // Error(invalid_argument) where it gets too long.
  std::string normalize(std::string_view text) const;

  bool adds_space() const { return adds_space_; }

 private:
  struct Front {
    std::size_t length;  // how many bytes of the text
    std::string_view normalized;
  };
  // What the front of `text`, which is not empty, becomes.
  Front normalize_front(std::string_view text) const;

  Charsmap charsmap_;
  bool adds_space_;
  bool removes_spaces_;
};

}  // namespace edgerunner
