#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"

namespace edgerunner {

// A file's metadata under its architecture's prefix: `uint("block_count")` reads
// "llama.block_count". Values are checked for range here, so that what follows may multiply them.
class Metadata {
 public:
  explicit Metadata(const gguf::File& file);

  const gguf::File& file() const { return *file_; }
  const std::string& architecture() const { return architecture_; }

  std::optional<std::uint32_t> find_uint(std::string_view key) const;  // at most kMaxValue
  std::uint32_t uint(std::string_view key) const;                      // required, at least 1
  std::optional<double> find_float(std::string_view key) const;        // finite
  std::optional<std::string_view> find_string(std::string_view key) const;

  // A number for all layers, or an array of one for each: [layers]. Required, each at least 1.
  std::vector<std::uint32_t> per_layer(std::string_view key, std::uint32_t layers) const;

  std::string full_key(std::string_view key) const;

  // Throws Error(invalid_file) or Error(unsupported) that begins with the file and the key.
  [[noreturn]] void refuse(std::string_view key, std::string_view why) const;
  [[noreturn]] void unsupported(std::string_view what) const;

 private:
  const gguf::File* file_;
  std::string architecture_;
};

}  // namespace edgerunner
