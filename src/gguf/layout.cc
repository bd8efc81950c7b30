#include "gguf/layout.h"

#include <fmt/format.h>

#include <bit>

#include "base/checked_math.h"

namespace edgerunner::gguf {

bool is_alignment(std::uint64_t value) {
  return std::has_single_bit(value) && value >= kMinAlignment && value <= kMaxAlignment;
}

std::optional<std::uint64_t> tensor_bytes(ElementType type, std::span<const std::uint64_t> shape) {
  std::optional<std::uint64_t> elements = 1;
  for (const std::uint64_t dimension : shape) {
    if (elements) elements = checked_multiply(*elements, dimension);
  }
  if (!elements) return std::nullopt;
  return checked_multiply(*elements / traits(type).block_length, traits(type).block_bytes);
}

std::span<const std::uint64_t> shape_of(const Tensor& tensor) {
  return std::span(tensor.shape).first(tensor.rank);
}

std::string shape_text(std::span<const std::uint64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ", "));
}

}  // namespace edgerunner::gguf
