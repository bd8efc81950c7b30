#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/value.h"
#include "tensor/element_type.h"

namespace edgerunner::gguf {

// One tensor: a view of its blocks in the mapped file.
struct Tensor {
  std::string_view name;
  ElementType type;
  std::uint32_t rank;                  // 1 to 4
  std::array<std::uint64_t, 4> shape;  // fastest-varying first, padded with 1; all at least 1
  std::span<const std::byte> data;     // exactly its bytes, aligned to the file's alignment

  std::uint64_t elements() const { return shape[0] * shape[1] * shape[2] * shape[3]; }
};

// An immutable, validated view of a GGUF file (version 2 or 3), single or split. It owns the
// mapping; every view that it hands out lives as long as it does. After construction nobody checks
// bounds again: offsets, lengths, counts, alignment, duplicate names and products of dimensions
// have been checked against the bytes really there. Construction throws Error(invalid_file),
// Error(unsupported) for another version or byte order, or Error(io), with a message that names the
// file and the thing.
class File {
 public:
  // `path` may be any shard of a split file (NAME-00002-of-00003.gguf): its siblings are opened
  // too.
  static File open(const std::filesystem::path& path);

  // A file that is already in memory (tests, fuzzing); `bytes` must outlive the File.
  static File view(std::span<const std::byte> bytes, std::string name = "memory");

  File(File&&) noexcept;
  File& operator=(File&&) noexcept;
  ~File();

  const std::string& name() const;  // the path of the first shard, for messages
  std::uint32_t version() const;
  std::uint64_t alignment() const;
  std::size_t shard_count() const;
  std::uint64_t bytes() const;  // of all shards

  std::span<const Value> metadata() const;  // in file order, the first shard's
  std::span<const Tensor> tensors() const;  // in file order, shard after shard

  const Value* find(std::string_view key) const;
  const Tensor* find_tensor(std::string_view tensor_name) const;

  // Typed access. An absent key gives nullopt (or the fallback); a value of another type throws
  // Error(invalid_file) that names the key, the type wanted and the type found. Integers of any
  // width are accepted where the value fits; `get_float` accepts f32 and f64 and integers.
  std::optional<std::uint64_t> get_uint(std::string_view key) const;
  std::optional<std::int64_t> get_int(std::string_view key) const;
  std::optional<double> get_float(std::string_view key) const;
  std::optional<bool> get_bool(std::string_view key) const;
  std::optional<std::string_view> get_string(std::string_view key) const;
  std::optional<std::span<const std::string_view>> get_strings(std::string_view key) const;
  std::optional<std::vector<std::int64_t>> get_ints(
      std::string_view key) const;  // array of integers or booleans
  std::optional<std::vector<float>> get_floats(std::string_view key) const;  // array of f32 or f64

  // The same, but an absent key throws Error(invalid_file) that names it.
  std::uint64_t require_uint(std::string_view key) const;
  double require_float(std::string_view key) const;
  std::string_view require_string(std::string_view key) const;

  // Asks the system to read the weights ahead (madvise), or to drop clean pages again.
  void will_need() const;
  void dont_need() const;
  // The weights will be read again and again where they are: MappedFile::will_read_often, where
  // there is memory for all of them.
  void will_read_often(const std::function<void(double)>& on_progress = {}) const;

 private:
  struct State;
  explicit File(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace edgerunner::gguf
