#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "gguf/file.h"
#include "gguf/metadata_value.h"
#include "tensor/element_type.h"

namespace edgerunner::gguf {

struct WriterOptions {
  std::uint32_t version = 3;  // or 2
  // Tensor data of one file at most, unless a single tensor has more; 0 writes a single file.
  std::uint64_t max_shard_bytes = 0;
};

// Writes a GGUF file: first every key is set and every tensor declared, then the tensors' bytes
// stream through in the order of their declaration, and finish() lets the file appear. Memory holds
// the metadata and never a tensor. Until finish() the bytes stand in PATH.part, which is removed
// where finish() isn't reached. A model of several shards becomes PREFIX-00001-of-0000N.gguf, where
// `path` is PREFIX.gguf.
//
// Throws Error(invalid_argument) for keys, shapes and calls that make no valid file, Error(io) that
// names the path where the system refuses. After an error the writer can only be destroyed.
class Writer {
 public:
  explicit Writer(std::filesystem::path path, WriterOptions options = {});
  Writer(Writer&&) noexcept;
  ~Writer();

  // Sets a key, or replaces it in its place. general.alignment (u32, default 32) sets the alignment
  // of the file. The keys split.* are the writer's own.
  void set(std::string_view key, const MetadataValue& value);

  // Sets every key of `file`, in its order, but split.*.
  void copy_metadata(const File& file);

  // Adds a tensor of 1 to 4 dimensions, fastest-varying first.
  void declare(std::string_view name, ElementType type, std::span<const std::uint64_t> shape);

  // The next bytes of the tensor `name`, which may come in pieces. The first call ends the
  // declarations.
  void write(std::string_view name, std::span<const std::byte> bytes);

  // Every tensor must be complete. Nothing may be called afterwards. `check`, where the model is a
  // single file, gets its path before it takes its name, and may throw.
  void finish(const std::function<void(const std::filesystem::path& written)>& check = nullptr);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace edgerunner::gguf
