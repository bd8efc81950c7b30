#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "tensor/element_type.h"

namespace edgerunner::convert {

// A tensor of a safetensors file, slowest-varying dimension first: a view into the mapped file.
struct SourceTensor {
  std::string name;
  std::string dtype;                // "BF16"
  std::optional<ElementType> type;  // of F32, F16 and BF16; others can't be weights here
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> data;  // exactly its bytes
};

// A safetensors file: the length of a JSON header (u64, little-endian), the header, which gives
// each tensor's type, shape and place, and the data. It is untrusted: the header's length, its
// JSON, names, types, products of dimensions and places are checked against the bytes there, and no
// two tensors share a byte. Throws Error(invalid_file) naming file and tensor, Error(unsupported)
// for a type that the format does not know, Error(io).
class Safetensors {
 public:
  explicit Safetensors(const std::filesystem::path& path);

  std::span<const SourceTensor> tensors() const { return tensors_; }

 private:
  MappedFile file_;
  std::vector<SourceTensor> tensors_;
};

}  // namespace edgerunner::convert
