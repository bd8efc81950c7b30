#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "gguf/byte_reader.h"
#include "gguf/file.h"
#include "gguf/value.h"

namespace edgerunner::gguf {

// Limits of the GGUF specification.
inline constexpr std::size_t kMaxKeyBytes = 65535;
inline constexpr std::size_t kMaxTensorNameBytes = 64;
inline constexpr std::uint32_t kMaxRank = 4;
inline constexpr std::uint64_t kDefaultAlignment = 32;
inline constexpr std::uint64_t kMinAlignment = 8;
// Not the specification's: the largest huge page of common machines is 1 GiB, and nobody aligns
// tensors further.
inline constexpr std::uint64_t kMaxAlignment = std::uint64_t{1} << 30;

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
