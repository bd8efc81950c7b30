#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "edgerunner/types.h"

namespace edgerunner::test {

// A llama of two layers with made-up F32 weights and a byte-level BPE vocabulary: token 0 ends a
// text, token 1 is <|mark|> (both control tokens), token 2+b is the byte b, and the last one, "he",
// is merged of "h" and "e".
struct TinyModelFile {
  std::string architecture = "llama";
  bool tensors = true;
  std::uint32_t context = 192;
  std::string chat_template = {};
};
inline constexpr TokenId kTinyEos = 0;
inline constexpr TokenId kTinyMark = 1;
inline constexpr TokenId kTinyHe = 258;
inline constexpr std::uint32_t kTinyVocab = 259;

constexpr TokenId tiny_byte_token(unsigned char byte) { return TokenId{2} + byte; }

void write_tiny_model(const std::filesystem::path& path, const TinyModelFile& model = {});

}  // namespace edgerunner::test
