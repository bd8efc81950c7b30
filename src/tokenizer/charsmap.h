#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"

namespace edgerunner {

// SentencePiece's normalisation rules (tokenizer.ggml.precompiled_charsmap): which sequences of
// bytes become which. They come as the size of a double array in bytes, the double array (a tree of
// keys, of 32-bit units), and the texts that its values point at, each ended by NUL; numbers are
// little-endian. Every unit that a key can reach has been checked when the map is made, so that
// looking up checks nothing.
class Charsmap {
 public:
  // Without rules where the file has none. Throws Error(invalid_file) naming the key, and
  // Error(unsupported) for keys or texts of a length that no real map has.
  static Charsmap read(const gguf::File& file);

  struct Rule {
    std::size_t length = 0;  // of the key; 0 where there is no rule
    std::string_view replacement;
  };
  // The rule of the longest key that `text` begins with.
  Rule find(std::string_view text) const;

 private:
  Charsmap() = default;
  Charsmap(const gguf::File& file, std::string_view bytes);
  void check_units(const gguf::File& file) const;
  void check_unit(const gguf::File& file, std::uint32_t index) const;
  // Where the children of the unit at `index` are counted from.
  std::uint32_t base(std::uint32_t index) const;
  std::string_view replacement(std::uint32_t leaf) const;

  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

}  // namespace edgerunner
