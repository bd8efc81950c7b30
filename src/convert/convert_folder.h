#pragma once

#include <filesystem>
#include <optional>

#include "quantize/quantize_file.h"

namespace edgerunner::convert {

// Writes the model in a folder of Hugging Face's (config.json, tokenizer.json, safetensors) as a
// GGUF file in the types that a recipe chooses; without one, in the type of its embedding (F32, F16
// or BF16). Vectors and the routers of mixtures become F32. The bytes are those of a conversion to
// F32 that quantize_file() then quantises with the same recipe and options. The folder is untrusted
// input. Tensors stream through a few megabytes; the file appears under its name when it is
// complete and EdgeRunner has read it back as a model.
//
// Throws Error(invalid_file) or Error(unsupported) that names the file and the key or tensor,
// Error(invalid_argument) for values that the type can't hold, Error(io).
QuantizeReport convert_folder(const std::filesystem::path& folder, const std::filesystem::path& out,
                              const std::optional<Recipe>& recipe, const QuantizeOptions& options);

}  // namespace edgerunner::convert
