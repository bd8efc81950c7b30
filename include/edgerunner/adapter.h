#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace edgerunner {

// LoRA adapters: GGUF files of small matrices that change what a model computes, loaded beside it.
// Its own weights stay as they are, so that sequences with different adapters, or none, run
// together. They run on the cpu and reference backends.

// An adapter to load with a model (ModelOptions::adapters); its place in the list is its id.
struct AdapterFile {
  std::filesystem::path path;
  float scale = 1;  // where a generation chooses none; times alpha / rank, as its file states them
};

// An adapter that applies to a generation (GenerateOptions::adapters).
struct AdapterScale {
  std::uint32_t id = 0;
  float scale = 1;  // 0: it doesn't apply
};

// An adapter that was loaded.
struct AdapterInfo {
  std::uint32_t id = 0;
  std::string path;
  std::string name;  // general.name, or empty
  float scale = 1;   // where a generation chooses none
  float alpha = 0;
  std::uint32_t rank = 0;  // the largest of its matrices
};

}  // namespace edgerunner
