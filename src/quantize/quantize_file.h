#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "gguf/file.h"
#include "quantize/importance_matrix.h"
#include "quantize/recipe.h"

namespace edgerunner {

// general.quantization_version: of the K formats' block layout.
inline constexpr std::uint32_t kQuantizationVersion = 2;

struct QuantizeOptions {
  int threads = 1;
  std::uint64_t max_shard_bytes = 0;  // 0: one file
  // What errors count; for matrices that it lacks all alike. Null: none.
  const ImportanceMatrix* importance = nullptr;
  // Called before each tensor, with the bytes of the model that are done.
  std::function<void(std::string_view tensor, std::uint64_t done, std::uint64_t total)> progress;
};

// What was written.
struct QuantizeReport {
  std::uint64_t elements = 0;
  std::uint64_t bytes_in = 0;                    // of tensors
  std::uint64_t bytes_out = 0;                   // of tensors
  std::map<ElementType, std::uint32_t> tensors;  // by type
};

// Writes `model` to `out` in the types that a recipe chooses, metadata and all. Tensors stream
// through a few megabytes a time, so that memory does not grow with the model; the file appears
// under its name when it is complete. Throws Error(invalid_argument) naming the tensor whose values
// don't fit its type, or where `out` is the model itself; Error(io) where the system refuses.
QuantizeReport quantize_file(const gguf::File& model, const std::filesystem::path& out,
                             const Recipe& recipe, const QuantizeOptions& options);

}  // namespace edgerunner
