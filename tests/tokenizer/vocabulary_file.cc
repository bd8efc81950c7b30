#include "tokenizer/vocabulary_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "gguf/file.h"

namespace edgerunner::test {
namespace {

using gguf::ValueType;

std::string letter(unsigned byte) {
  // The bytes that GPT-2's alphabet doesn't leave as they are, in order, stand from U+0100.
  unsigned moved = 0;
  for (unsigned b = 0; b < 256; ++b) {
    const bool prints = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    const unsigned code = prints ? b : 256 + moved++;
    if (b != byte) continue;
    if (code < 0x80) return std::string(1, static_cast<char>(code));
    return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
  }
  return {};
}

}  // namespace

TokenId VocabularyFile::id(const std::string& token) const {
  const auto found = std::find(tokens.begin(), tokens.end(), token);
  if (found == tokens.end()) throw std::logic_error("no token " + token);
  return static_cast<TokenId>(found - tokens.begin());
}

FileBuilder VocabularyFile::build() const {
  FileBuilder body;
  std::uint64_t keys = 0;
  const auto strings = [&](std::string_view key, const std::vector<std::string>& list) {
    body.array(key, ValueType::string, list.size());
    for (const std::string& text : list) body.string(text);
    ++keys;
  };
  if (model) {
    body.text_key("tokenizer.ggml.model", *model);
    ++keys;
  }
  if (pre) {
    body.text_key("tokenizer.ggml.pre", *pre);
    ++keys;
  }
  strings("tokenizer.ggml.tokens", tokens);
  body.array("tokenizer.ggml.token_type", ValueType::i32, types.size());
  for (const std::int32_t type : types) body.number(type);
  ++keys;
  if (scores) {
    body.array("tokenizer.ggml.scores", ValueType::f32, scores->size());
    for (const float score : *scores) body.number(score);
    ++keys;
  }
  if (charsmap) {
    body.array("tokenizer.ggml.precompiled_charsmap", ValueType::u8, charsmap->size());
    for (const std::uint8_t byte : *charsmap) body.number(byte);
    ++keys;
  }
  if (merges) strings("tokenizer.ggml.merges", *merges);
  for (const auto& [key, number] : numbers) {
    body.u32_key("tokenizer.ggml." + key, number);
    ++keys;
  }
  for (const auto& [key, flag] : flags) {
    body.key("tokenizer.ggml." + key, ValueType::boolean).number<std::uint8_t>(flag ? 1 : 0);
    ++keys;
  }
  FileBuilder file;
  file.header(0, keys).append(body.bytes());
  return file;
}

std::unique_ptr<Tokenizer> VocabularyFile::load() const {
  const FileBuilder file = build();
  return load_tokenizer(gguf::File::view(file.bytes(), "vocabulary"));
}

VocabularyFile byte_level(const std::string& pre, const std::vector<std::string>& merges) {
  VocabularyFile file;
  file.model = "gpt2";
  file.pre = pre;
  file.merges = merges;
  for (unsigned byte = 0; byte < 256; ++byte) file.add(letter(byte));
  for (std::string merge : merges) {
    merge.erase(merge.find(' '), 1);
    file.add(merge);
  }
  return file;
}

VocabularyFile sentencepiece(const std::vector<std::string>& pieces) {
  VocabularyFile file;
  file.model = "llama";
  file.pre = "default";
  file.scores.emplace();
  file.add("<unk>", kUnknown).add("<s>", kControl).add("</s>", kControl);
  for (unsigned byte = 0; byte < 256; ++byte) file.add(fmt::format("<0x{:02X}>", byte), kByte);
  float score = 0;
  for (const std::string& piece : pieces) file.add(piece, 1, score--);
  file.numbers = {{"bos_token_id", 1}, {"eos_token_id", 2}, {"unknown_token_id", 0}};
  return file;
}

VocabularyFile unigram(const std::vector<std::pair<std::string, float>>& pieces) {
  VocabularyFile file;
  file.model = "t5";
  file.scores.emplace();
  file.add("<pad>", kControl).add("</s>", kControl).add("<unk>", kUnknown);
  for (const auto& [piece, score] : pieces) file.add(piece, 1, score);
  file.numbers = {{"eos_token_id", 1}, {"unknown_token_id", 2}};
  return file;
}

VocabularyFile wordpiece(const std::vector<std::string>& pieces) {
  VocabularyFile file;
  file.model = "bert";
  for (const char* special : {"[PAD]", "[UNK]", "[CLS]", "[SEP]"}) file.add(special, kControl);
  for (const std::string& piece : pieces) file.add(piece);
  return file;
}

}  // namespace edgerunner::test
