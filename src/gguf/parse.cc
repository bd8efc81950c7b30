#include "gguf/parse.h"

#include "base/utf8.h"
#include "gguf/fail.h"
#include "gguf/name_index.h"
#include "gguf/typed.h"

namespace edgerunner::gguf {
namespace {

// In the file: a key's length, one byte of it, the type, one byte of value.
constexpr std::uint64_t kMinMetadataBytes = 8 + 1 + 4 + 1;
// A name's length, one byte of it, the rank, one dimension, the element type, the offset.
constexpr std::uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

constexpr std::uint32_t byte_swapped(std::uint32_t value) {
  return value << 24 | (value & 0xFF00U) << 8 | (value >> 8 & 0xFF00U) | value >> 24;
}

void check_magic(ByteReader& reader) {
  if (reader.remaining() == 0) {
    fail(ErrorCode::invalid_file, reader.file(), "the file is empty; fetch it again");
  }
  if (reader.remaining() >= kMagic.size()) {
    const std::span<const std::byte> magic = reader.take(kMagic.size(), {"the magic number"});
    if (std::memcmp(magic.data(), kMagic.data(), kMagic.size()) == 0) return;
  }
  fail(ErrorCode::invalid_file, reader.file(),
       "this is not a GGUF file, which would begin with the letters GGUF; give the path of a "
       "model in GGUF format");
}

std::uint32_t read_version(ByteReader& reader) {
  const auto version = reader.number<std::uint32_t>({"the version"});
  if (version == 2 || version == 3) return version;
  if (const std::uint32_t swapped = byte_swapped(version); swapped >= 1 && swapped <= 0xFFFF) {
    fail(ErrorCode::unsupported, reader.file(),
         "the file is written for big-endian machines (version {}); convert it to little-endian",
         swapped);
  }
  fail(ErrorCode::unsupported, reader.file(),
       "GGUF version {} is not supported, only versions 2 and 3; convert the model again", version);
}

void check_count(const ByteReader& reader, std::string_view what, std::uint64_t count,
                 std::uint64_t min_bytes) {
  if (count <= reader.remaining() / min_bytes) return;
  fail(ErrorCode::invalid_file, reader.file(),
       "the header claims {} {}, more than the {} bytes after it can hold; the file is damaged or "
       "incomplete, so fetch it again",
       count, what, reader.remaining());
}

std::uint64_t read_alignment(std::string_view file, std::span<const Value> metadata,
                             const NameIndex<Value>& index) {
  const Value* value = index.find(metadata, kAlignmentKey);
  if (value == nullptr) return kDefaultAlignment;
  const std::uint64_t alignment = to_uint(file, *value);
  if (!is_alignment(alignment)) {
    fail(ErrorCode::invalid_file, file,
         "general.alignment is {} but must be a power of two from {} to {}; the file is damaged or "
         "was written wrongly",
         alignment, kMinAlignment, kMaxAlignment);
  }
  return alignment;
}

}  // namespace

void check_name(std::string_view file, std::string_view what, std::string_view name,
                std::size_t max_bytes) {
  if (name.empty()) fail(ErrorCode::invalid_file, file, "a {} is empty", what);
  if (name.size() > max_bytes) {
    fail(ErrorCode::invalid_file, file,
         "a {} has {} bytes but at most {} are allowed; the file is damaged or was written wrongly",
         what, name.size(), max_bytes);
  }
  if (!is_printable(name)) {
    fail(ErrorCode::invalid_file, file,
         "a {} of {} bytes isn't printable UTF-8; the file is damaged, so fetch it again", what,
         name.size());
  }
}

Shard parse_shard(std::span<const std::byte> bytes, std::string_view file) {
  ByteReader reader(bytes, file);
  check_magic(reader);
  Shard shard;
  shard.version = read_version(reader);
  const auto tensor_count = reader.number<std::uint64_t>({"the number of tensors"});
  const auto metadata_count = reader.number<std::uint64_t>({"the number of metadata keys"});
  check_count(reader, "metadata keys", metadata_count, kMinMetadataBytes);
  check_count(reader, "tensors", tensor_count, kMinTensorBytes);
  shard.metadata = parse_metadata(reader, metadata_count);
  const NameIndex<Value> keys(shard.metadata);
  if (const Value* twice = keys.duplicate(shard.metadata)) {
    fail(ErrorCode::invalid_file, file,
         "metadata key '{}' occurs twice; the file was written wrongly, so convert it again",
         twice->key);
  }
  shard.alignment = read_alignment(file, shard.metadata, keys);
  shard.tensors = parse_tensors(reader, tensor_count, shard.alignment, bytes);
  return shard;
}

}  // namespace edgerunner::gguf
