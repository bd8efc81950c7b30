#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "edgerunner/types.h"
#include "gguf/file.h"
#include "tokenizer/string_index.h"

namespace edgerunner {

// tokenizer.ggml.token_type; the numbers are the file format's.
enum class TokenKind : std::uint8_t {
  undefined = 0,  // as normal
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,  // padding: never found in text
  byte = 6,
};

// Whether text is made of such tokens.
constexpr bool is_plain(TokenKind kind) {
  return kind == TokenKind::normal || kind == TokenKind::undefined;
}

// What a kind of tokenizer calls its special tokens, for files that don't give their ids; empty
// where there is no such custom.
struct SpecialNames {
  std::string_view bos;
  std::string_view eos;
  std::string_view unknown;
};

// The tokens of a file and what its metadata says of them, validated.
class Vocabulary {
 public:
  // Throws Error(invalid_file) naming the key: missing or wrongly typed, lists of different
  // lengths, a kind or an id out of range, an empty token, the same token twice (tokens of kind
  // `unused` aside).
  static Vocabulary read(const gguf::File& file, const SpecialNames& names = {});

  std::size_t size() const { return texts_.size(); }
  bool contains(TokenId token) const {
    return token >= 0 && static_cast<std::size_t>(token) < size();
  }
  std::string_view text(TokenId token) const { return texts_[static_cast<std::size_t>(token)]; }
  TokenKind kind(TokenId token) const { return kinds_[static_cast<std::size_t>(token)]; }
  TokenId find(std::string_view text) const { return index_.find(texts_, text); }

  TokenId bos() const { return bos_; }
  TokenId eos() const { return eos_; }
  TokenId unknown() const { return unknown_; }
  std::optional<bool> add_bos() const { return add_bos_; }
  std::optional<bool> add_eos() const { return add_eos_; }
  // The end of a turn or of the text: by their ids in the metadata, and by name.
  bool is_end_of_generation(TokenId token) const;

 private:
  Vocabulary(const gguf::File& file, std::span<const std::string_view> tokens);
  void read_kinds(const gguf::File& file);
  void build_index(const gguf::File& file);
  void read_special(const gguf::File& file, const SpecialNames& names);
  TokenId read_id(const gguf::File& file, std::string_view key) const;
  TokenId read_id(const gguf::File& file, std::initializer_list<std::string_view> keys,
                  std::string_view name) const;

  StringList texts_;
  StringIndex index_;
  std::vector<TokenKind> kinds_;
  std::vector<TokenId> end_of_generation_;  // sorted
  TokenId bos_ = kNoToken;
  TokenId eos_ = kNoToken;
  TokenId unknown_ = kNoToken;
  std::optional<bool> add_bos_;
  std::optional<bool> add_eos_;
};

}  // namespace edgerunner
