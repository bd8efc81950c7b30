#include <algorithm>
#include <optional>

#include "base/checked_math.h"
#include "gguf/fail.h"
#include "gguf/parse.h"

namespace edgerunner::gguf {
namespace {

// A tensor as the file describes it; its data can be placed once all descriptions are read.
struct Placement {
  std::uint64_t offset;  // from the beginning of the data section
  std::uint64_t bytes;
  std::size_t tensor;  // which one
};

void read_shape(ByteReader& reader, Tensor& tensor) {
  tensor.rank = reader.number<std::uint32_t>({"the rank of tensor", tensor.name});
  if (tensor.rank < 1 || tensor.rank > kMaxRank) {
    fail(ErrorCode::invalid_file, reader.file(),
         "tensor '{}' has {} dimensions but must have 1 to {}; the file is damaged or was written "
         "wrongly",
         tensor.name, tensor.rank, kMaxRank);
  }
  tensor.shape = {1, 1, 1, 1};
  for (std::uint32_t i = 0; i < tensor.rank; ++i) {
    tensor.shape[i] = reader.number<std::uint64_t>({"the shape of tensor", tensor.name});
    if (tensor.shape[i] == 0) {
      fail(ErrorCode::invalid_file, reader.file(),
           "dimension {} of tensor '{}' is 0 but must be at least 1; the file is damaged or was "
           "written wrongly",
           i, tensor.name);
    }
  }
}

ElementType read_element_type(ByteReader& reader, const Tensor& tensor) {
  const auto number = reader.number<std::uint32_t>({"the element type of tensor", tensor.name});
  const ElementTypeTraits* found = find_element_type(number);
  if (found == nullptr) {
    fail(ErrorCode::unsupported, reader.file(),
         "tensor '{}' has the unknown element type {}; the file is damaged, or use a model in "
         "another quantisation",
         tensor.name, number);
  }
  return found->type;
}

// The bytes that the shape and the element type ask for.
std::uint64_t checked_bytes(std::string_view file, const Tensor& tensor) {
  const ElementTypeTraits& type = traits(tensor.type);
  if (tensor.shape[0] % type.block_length != 0) {
    fail(ErrorCode::invalid_file, file,
         "tensor '{}' of type {} has rows of {} elements, not a multiple of the block length {}; "
         "the file is damaged or was written wrongly",
         tensor.name, type.name, tensor.shape[0], type.block_length);
  }
  const std::optional<std::uint64_t> bytes = tensor_bytes(tensor.type, shape_of(tensor));
  if (!bytes) {
    fail(ErrorCode::invalid_file, file,
         "the shape {} of tensor '{}' has more elements than any file holds; the file is damaged, "
         "so fetch it again",
         shape_text(shape_of(tensor)), tensor.name);
  }
  return *bytes;
}

Placement read_placement(ByteReader& reader, const Tensor& tensor, std::uint64_t alignment,
                         std::size_t index) {
  const std::uint64_t bytes = checked_bytes(reader.file(), tensor);
  const auto offset = reader.number<std::uint64_t>({"the offset of tensor", tensor.name});
  if (offset % alignment != 0) {
    fail(ErrorCode::invalid_file, reader.file(),
         "tensor '{}' begins at offset {}, not a multiple of the alignment {}; the file is damaged "
         "or was written wrongly",
         tensor.name, offset, alignment);
  }
  return {offset, bytes, index};
}

// Tensors may come in any order and with gaps, but no two may share bytes: what a program derives
// from all tensors together is then bounded by the size of the file.
void check_overlap(std::string_view file, std::span<const Tensor> tensors,
                   std::vector<Placement>& placements) {
  std::sort(placements.begin(), placements.end(),
            [](const Placement& a, const Placement& b) { return a.offset < b.offset; });
  const auto overlap = std::adjacent_find(
      placements.begin(), placements.end(),
      [](const Placement& a, const Placement& b) { return b.offset - a.offset < a.bytes; });
  if (overlap == placements.end()) return;
  fail(ErrorCode::invalid_file, file,
       "tensors '{}' and '{}' share bytes at offset {}; the file is damaged or was written wrongly",
       tensors[overlap->tensor].name, tensors[std::next(overlap)->tensor].name,
       std::next(overlap)->offset);
}

}  // namespace

std::vector<Tensor> parse_tensors(ByteReader& reader, std::uint64_t count, std::uint64_t alignment,
                                  std::span<const std::byte> bytes) {
  std::vector<Tensor> tensors;
  std::vector<Placement> placements;
  for (std::uint64_t i = 0; i < count; ++i) {
    Tensor tensor{};
    tensor.name = reader.string({"a tensor's name"});
    check_name(reader.file(), "tensor's name", tensor.name, kMaxTensorNameBytes);
    read_shape(reader, tensor);
    tensor.type = read_element_type(reader, tensor);
    placements.push_back(read_placement(reader, tensor, alignment, i));
    tensors.push_back(tensor);
  }
  // A file without tensors needs no padding before its data section.
  const std::optional<std::uint64_t> begin = checked_align_up(reader.offset(), alignment);
  const std::uint64_t room = begin && *begin <= bytes.size() ? bytes.size() - *begin : 0;
  for (const Placement& place : placements) {
    Tensor& tensor = tensors[place.tensor];
    if (place.offset > room || place.bytes > room - place.offset) {
      fail(ErrorCode::invalid_file, reader.file(),
           "tensor '{}' {} {} needs {} bytes at offset {} of the data, which has {} bytes; the "
           "file is damaged or incomplete, so fetch it again",
           tensor.name, traits(tensor.type).name, shape_text(shape_of(tensor)), place.bytes,
           place.offset, room);
    }
    tensor.data = bytes.subspan(*begin + place.offset, place.bytes);
  }
  check_overlap(reader.file(), tensors, placements);
  return tensors;
}

}  // namespace edgerunner::gguf
