#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace edgerunner::test {

struct TinyModelOptions {
  bool tokenizer = true;
  std::uint32_t context = 1024;
  std::uint32_t sliding_window = 0;
  std::string chat_template = {};
  std::uint32_t seed = 20;            // of the weights
  std::string last_token = "\u20ac";  // of the vocabulary
};

// Writes a working model of two layers with random weights (the same for the same seed) and a
// byte-fallback vocabulary, half a megabyte: what needs a file and not a sensible answer.
void write_tiny_model(const std::filesystem::path& path, const TinyModelOptions& options = {});

}  // namespace edgerunner::test
