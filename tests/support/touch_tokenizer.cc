#include "support/touch_tokenizer.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "base/utf8.h"
#include "edgerunner/error.h"
#include "edgerunner/tokenizer.h"
#include "tokenizer/load.h"

namespace edgerunner::test {
namespace {

constexpr std::string_view kTexts[] = {
    "",
    "a",
    "abcd ab  cd\n\n a",
    "<s>a<|end|><user></s>",
    std::string_view("\0a\0", 3),
    "caf\xC3\xA9 e\xCC\x81 \xE4\xBD\xA0\xE5\xA5\xBD \xF0\x9F\x99\x82",
    "\xFF\xC3\xE4\xBD \xF0\x9F",  // not UTF-8
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 1234567 \t\r\n",
};

void promise(bool kept, const char* what) {
  if (kept) return;
  std::fprintf(stderr, "a tokenizer broke a promise: %s\n", what);
  std::abort();
}

bool is_id(const Tokenizer& tokenizer, TokenId id) {
  return id >= 0 && static_cast<std::size_t>(id) < tokenizer.size();
}

// Encodes, decodes, and decodes as a stream. A vocabulary need not be able to write every text.
std::uint64_t touch_text(const Tokenizer& tokenizer, std::string_view text,
                         const EncodeOptions& options) {
  std::vector<TokenId> ids;
  try {
    ids = tokenizer.encode(text, options);
  } catch (const Error&) {
    return 0;
  }
  StreamDecoder stream(tokenizer, options.parse_special);
  std::uint64_t total = 0;
  for (const TokenId id : ids) {
    promise(is_id(tokenizer, id), "encode() gives ids of the vocabulary");
    const std::string piece = stream.push(id);
    promise(is_utf8(piece), "a stream gives whole characters");
    total += piece.size();
  }
  promise(is_utf8(stream.finish()), "a stream ends in whole characters");
  return total + tokenizer.decode(ids, options.parse_special).size();
}

template <typename Action>
void expect_refused(Action action) {
  try {
    action();
  } catch (const Error&) {
    return;
  }
  promise(false, "ids outside the vocabulary are refused");
}

}  // namespace

std::uint64_t touch_tokenizer(const gguf::File& file) {
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(file);
  std::uint64_t total = 0;
  for (const std::string_view text : kTexts) {
    for (const bool special : {false, true}) {
      total += touch_text(*tokenizer, text, {.add_special = special, .parse_special = special});
    }
    total += static_cast<std::uint64_t>(tokenizer->find(text) != kNoToken);
  }
  const auto size = static_cast<TokenId>(tokenizer->size());
  for (TokenId id = 0; id < size; ++id) {
    total += tokenizer->token_bytes(id).size() + tokenizer->token_bytes(id, true).size();
    total += static_cast<std::uint64_t>(tokenizer->is_end_of_generation(id)) +
             static_cast<std::uint64_t>(tokenizer->is_control(id));
  }
  for (const TokenId special : {tokenizer->bos(), tokenizer->eos()}) {
    promise(special == kNoToken || is_id(*tokenizer, special), "BOS and EOS are in the vocabulary");
  }
  promise(!tokenizer->adds_bos() || tokenizer->bos() != kNoToken,
          "only a BOS that is there is added");
  promise(!tokenizer->adds_eos() || tokenizer->eos() != kNoToken,
          "only an EOS that is there is added");
  for (const TokenId outside : {kNoToken, size, TokenId{0x7FFFFFFF}}) {
    expect_refused([&] { (void)tokenizer->token_bytes(outside); });
  }
  return total;
}

}  // namespace edgerunner::test
