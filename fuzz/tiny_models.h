#pragma once

#include <filesystem>

namespace edgerunner::fuzz {

// Writes whole models of a few kilobytes, one a family and tokenizer, to `folder`.
void write_tiny_models(const std::filesystem::path& folder);

// Writes LoRA adapters for the tiny model llama-yarn.
void write_tiny_adapters(const std::filesystem::path& folder);

}  // namespace edgerunner::fuzz
