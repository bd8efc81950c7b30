#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gguf/file.h"

namespace edgerunner::test {

// A tensor as a safetensors file has it: slowest-varying dimension first.
struct FolderTensor {
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::vector<std::byte> bytes;
};
using FolderTensors = std::map<std::string, FolderTensor>;

// What Hugging Face's folder of a model would hold, put together from a GGUF file by the inverse of
// GGUF's conversion: names, order of the rows of q and k, Gemma's norms, one tensor an expert.
FolderTensors folder_tensors(const gguf::File& file);

// config.json of a fixture: what made the model in transformers.
nlohmann::json fixture_config(const std::string& name);

// tokenizer.json of a "llama" vocabulary: merges in the order of the scores.
nlohmann::json sentencepiece_json(const gguf::File& file);
// Of a "gpt2" vocabulary, with the given normaliser and pre-tokenizer.
nlohmann::json byte_level_json(const gguf::File& file, const nlohmann::json& normalizer,
                               const nlohmann::json& pre_tokenizer);

void write_text(const std::filesystem::path& path, const std::string& text);
void write_safetensors(const std::filesystem::path& path, const FolderTensors& tensors);

// A whole folder of a fixture, in `shards` files of weights.
void write_fixture_folder(const std::filesystem::path& folder, const std::string& name,
                          const gguf::File& file, std::size_t shards = 1);

}  // namespace edgerunner::test
