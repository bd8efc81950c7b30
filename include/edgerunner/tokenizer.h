#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edgerunner/types.h"

namespace edgerunner {

struct EncodeOptions {
  bool add_special = true;  // BOS/EOS as the model's metadata says
  bool parse_special =
      false;  // CONTROL tokens written in the text count as such; else they are plain text
  // Offsets of bytes of the text, ascending: no token that is matched as a whole covers one. For
  // text of others within a text whose CONTROL tokens count.
  std::span<const std::size_t> plain = {};
};

// Text to token ids and back. Immutable and safe to use from many threads at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Text is taken by length: it may hold NUL and need not be valid UTF-8.
  // Throws Error(invalid_argument) where the pre-tokenizer's expression hits its match limit.
  virtual std::vector<TokenId> encode(std::string_view text,
                                      const EncodeOptions& options = {}) const = 0;

  // The bytes that a token stands for (not always whole UTF-8 characters); empty for control tokens
  // unless `special`. Throws Error(invalid_argument) for an id outside the vocabulary.
  virtual std::string token_bytes(TokenId token, bool special = false) const = 0;

  // The bytes of a whole sequence, without the space that the tokenizer itself put in front.
  virtual std::string decode(std::span<const TokenId> tokens, bool special = false) const = 0;

  virtual std::size_t size() const = 0;
  virtual TokenId bos() const = 0;  // kNoToken where there is none, as for the next
  virtual TokenId eos() const = 0;
  virtual bool adds_bos() const = 0;
  virtual bool adds_eos() const = 0;
  virtual bool is_end_of_generation(TokenId token) const = 0;  // EOS, EOT and their like
  virtual bool is_control(TokenId token) const = 0;
  // The id of a token by its exact vocabulary text, or kNoToken.
  virtual TokenId find(std::string_view text) const = 0;
};

// Decodes a stream of tokens; what it returns is always whole UTF-8 characters.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool special = false)
      : tokenizer_(&tokenizer), special_(special) {}

  // Valid UTF-8 that the token completes; may be empty. Bytes that can't begin or continue a
  // character become U+FFFD, as in the WHATWG decoding standard.
  std::string push(TokenId token);
  // What is still pending, as U+FFFD where it never became a character.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool special_;
  TokenId previous_ = kNoToken;
  std::string pending_;
};

}  // namespace edgerunner
