#include "tokenizer/byte_bpe.h"

#include <fmt/format.h>

#include <utility>

#include "edgerunner/error.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/normalize.h"
#include "tokenizer/utf8.h"

namespace edgerunner {
namespace {

constexpr std::string_view kMerges = "tokenizer.ggml.merges";
constexpr std::string_view kPre = "tokenizer.ggml.pre";

[[noreturn]] void bad_merge(const gguf::File& file, std::size_t number, std::string_view merge,
                            std::string_view what) {
  throw Error(ErrorCode::invalid_file,
              fmt::format("{}: {}: merge {} ({}) {}", file.name(), kMerges, number, merge, what));
}

// Each merge is "left right", and its rank is its place in the list.
PairTable read_merges(const gguf::File& file, const Vocabulary& vocabulary) {
  const auto merges = file.get_strings(kMerges);
  if (!merges) {
    throw Error(ErrorCode::invalid_file,
                fmt::format("{}: {}: the key is missing, but tokenizer.ggml.model is gpt2",
                            file.name(), kMerges));
  }
  PairTable table(merges->size());
  std::string joined;
  for (std::size_t rank = 0; rank < merges->size(); ++rank) {
    const std::string_view merge = (*merges)[rank];
    const std::size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos) bad_merge(file, rank, merge, "is not a pair of tokens");
    const std::string_view left = merge.substr(0, space);
    const std::string_view right = merge.substr(space + 1);
    joined.assign(left).append(right);
    const TokenId left_token = vocabulary.find(left);
    const TokenId right_token = vocabulary.find(right);
    const TokenId result = vocabulary.find(joined);
    if (left_token == kNoToken || right_token == kNoToken || result == kNoToken) {
      bad_merge(file, rank, merge, "names a token that the vocabulary lacks");
    }
    table.insert(left_token, right_token, {static_cast<std::uint32_t>(rank), result});
  }
  return table;
}

}  // namespace

std::unique_ptr<Tokenizer> ByteBpeTokenizer::load(const gguf::File& file) {
  const std::string_view name = file.get_string(kPre).value_or("default");
  auto pre_tokenizer = PreTokenizer::named(name);
  if (!pre_tokenizer) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{}: the pre-tokenizer \"{}\" ({}) is not supported", file.name(), name, kPre));
  }
  Vocabulary vocabulary = Vocabulary::read(file);
  PairTable merges = read_merges(file, vocabulary);
  return std::unique_ptr<Tokenizer>(
      new ByteBpeTokenizer(std::move(vocabulary), std::move(*pre_tokenizer), std::move(merges)));
}

ByteBpeTokenizer::ByteBpeTokenizer(Vocabulary vocabulary, PreTokenizer pre_tokenizer,
                                   PairTable merges)
    : VocabularyTokenizer(std::move(vocabulary), {.bos = pre_tokenizer.adds_bos()}),
      pre_tokenizer_(std::move(pre_tokenizer)),
      merger_(std::move(merges)) {
  match_special([](std::string_view text) { return text; });
  for (unsigned byte = 0; byte < 256; ++byte) {
    byte_tokens_[byte] = find(byte_letter(static_cast<std::uint8_t>(byte)));
    // As Hugging Face's library does where a vocabulary was trained without some byte.
    if (byte_tokens_[byte] == kNoToken) byte_tokens_[byte] = this->vocabulary().unknown();
  }
}

void ByteBpeTokenizer::encode_all(std::string_view text, const EncodeOptions& options,
                                  Call& call) const {
  PreTokenizer::Scratch scratch;
  divide(text, options, call.ids, [&](std::string_view stretch) {
    while (!stretch.empty()) {
      const std::string_view valid = stretch.substr(0, valid_utf8_prefix(stretch));
      if (pre_tokenizer_.normalizes() && !is_surely_nfc(valid)) {
        encode_plain(to_nfc(valid), scratch, call);
      } else if (!valid.empty()) {
        encode_plain(valid, scratch, call);
      }
      stretch.remove_prefix(valid.size());
      if (stretch.empty()) break;
      for (std::size_t bad = first_utf8_unit(stretch).length; bad > 0; --bad) {
        encode_word(stretch.substr(0, 1), call);
        stretch.remove_prefix(1);
      }
    }
  });
}

void ByteBpeTokenizer::encode_plain(std::string_view text, PreTokenizer::Scratch& scratch,
                                    Call& call) const {
  pre_tokenizer_.split(text, scratch);
  for (const Expression::Range& piece : scratch.pieces) {
    encode_word(text.substr(piece.begin, piece.end - piece.begin), call);
  }
}

void ByteBpeTokenizer::encode_word(std::string_view word, Call& call) const {
  if (call.cache.replay(word, call.ids)) return;
  const std::size_t first = call.ids.size();
  TokenId whole = kNoToken;
  if (pre_tokenizer_.ignores_merges()) {
    std::string letters;
    append_letters(letters, word);
    whole = find(letters);
  }
  if (whole != kNoToken && vocabulary().kind(whole) == TokenKind::normal) {
    call.ids.push_back(whole);
  } else {
    call.symbols.clear();
    for (const char byte : word) {
      const TokenId token = byte_tokens_[static_cast<std::uint8_t>(byte)];
      if (token != kNoToken) call.symbols.push_back(token);
    }
    merger_.merge(call.symbols, call.merging, call.ids);
  }
  call.cache.remember(word, call.ids, first);
}

std::string ByteBpeTokenizer::token_bytes(TokenId token, bool special) const {
  require(token);
  if (is_silent(token)) return special ? std::string(vocabulary().text(token)) : std::string();
  const std::string_view text = vocabulary().text(token);
  if (vocabulary().kind(token) == TokenKind::user_defined) return std::string(text);
  // A token that isn't written in the alphabet stands for its own text.
  return letters_to_bytes(text).value_or(std::string(text));
}

std::string ByteBpeTokenizer::decode(std::span<const TokenId> tokens, bool special) const {
  std::string text;
  for (const TokenId token : tokens) text += token_bytes(token, special);
  return text;
}

}  // namespace edgerunner
