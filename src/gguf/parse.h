#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "gguf/byte_reader.h"
#include "gguf/file.h"
#include "gguf/layout.h"
#include "gguf/value.h"

namespace edgerunner::gguf {

// One file of a model, validated; views into its bytes.
struct Shard {
  std::uint32_t version = 0;
  std::uint64_t alignment = kDefaultAlignment;
  std::vector<Value> metadata;
  std::vector<Tensor> tensors;
};

// Reads and checks a whole file; `file` is its name for messages. Throws as gguf::File says.
// Memory grows with what has been read, never with a count that the file merely claims.
Shard parse_shard(std::span<const std::byte> bytes, std::string_view file);

// The two lists of a file, in order; `reader` stands at their beginning.
std::vector<Value> parse_metadata(ByteReader& reader, std::uint64_t count);
std::vector<Tensor> parse_tensors(ByteReader& reader, std::uint64_t count, std::uint64_t alignment,
                                  std::span<const std::byte> bytes);

// Throws Error(invalid_file) unless `name`, of a key or tensor (`what`), can be printed and has 1
// to `max_bytes` bytes.
void check_name(std::string_view file, std::string_view what, std::string_view name,
                std::size_t max_bytes);

}  // namespace edgerunner::gguf
