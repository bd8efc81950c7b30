#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "arch/adapter_set.h"
#include "arch/decoder.h"
#include "edgerunner/types.h"
#include "gguf/file.h"

namespace edgerunner::test {

// A tiny model of tests/fixtures/lora with its adapters, and what Hugging Face PEFT computes with
// them in float64.
struct LoraFixture {
  struct Answer {
    AdapterSet adapters;                                  // empty: the model as it is
    std::map<std::uint32_t, std::vector<double>> logits;  // by position
    double peak = 0;                                      // largest |logit|
  };

  std::string name;
  gguf::File file;
  Decoder decoder;
  std::vector<TokenId> prompt;
  std::vector<LoraAdapter> adapters;
  std::vector<Answer> answers;

  LoraFixture(const LoraFixture&) = delete;
  LoraFixture& operator=(const LoraFixture&) = delete;

  // "llama", with two adapters, "phi3" or "starcoder2".
  explicit LoraFixture(const std::string& name);
};

std::filesystem::path lora_file(const std::string& name);  // "llama-a.gguf"

}  // namespace edgerunner::test
