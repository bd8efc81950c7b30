#include "cpu/kernels/random_weights.h"

#include <cstring>

#include "base/half.h"

namespace edgerunner::test {
namespace {

// Byte offsets of the f16 numbers of a block.
std::vector<std::size_t> half_offsets(ElementType type) {
  switch (type) {
    case ElementType::q4_0:
    case ElementType::q5_0:
    case ElementType::q8_0:
    case ElementType::iq4_nl:
    case ElementType::iq4_xs:
      return {0};
    case ElementType::q4_1:
    case ElementType::q5_1:
    case ElementType::q4_k:
    case ElementType::q5_k:
      return {0, 2};
    case ElementType::q2_k:
      return {80, 82};
    case ElementType::q3_k:
      return {108};
    case ElementType::q6_k:
      return {208};
    default:
      return {};
  }
}

}  // namespace

RandomWeights::RandomWeights(ElementType type, std::uint32_t rows, std::uint32_t cols,
                             std::uint32_t seed, std::size_t misalignment)
    : type_(type), cols_(cols), misalignment_(misalignment) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> scale(-0.1F, 0.1F);
  const std::size_t total = rows * row_bytes(type, cols);
  const std::size_t block_bytes = traits(type).block_bytes;
  bytes_.resize(misalignment + total);
  std::byte* data = bytes_.data() + misalignment;
  for (std::size_t i = 0; i < total; i += block_bytes) {
    if (type == ElementType::f32) {
      const float value = normal(random);
      std::memcpy(data + i, &value, sizeof value);
    } else if (type == ElementType::f16 || type == ElementType::bf16) {
      const float value = normal(random);
      const std::uint16_t bits = type == ElementType::f16 ? f32_to_f16(value) : f32_to_bf16(value);
      std::memcpy(data + i, &bits, sizeof bits);
    } else {
      for (std::size_t j = 0; j < block_bytes; ++j) data[i + j] = static_cast<std::byte>(random());
      for (const std::size_t offset : half_offsets(type)) {
        const std::uint16_t bits = f32_to_f16(scale(random));
        std::memcpy(data + i + offset, &bits, sizeof bits);
      }
      if (type == ElementType::mxfp4) data[i] = static_cast<std::byte>(118 + random() % 12);
    }
  }
  values_.resize(std::size_t{rows} * cols);
  dequantize(type, std::span(bytes_).subspan(misalignment), values_);
}

Matrix RandomWeights::matrix(std::uint32_t rows) const {
  return {.name = "random",
          .type = type_,
          .rows = rows,
          .cols = cols_,
          .data = std::span(bytes_).subspan(misalignment_, rows * row_bytes(type_, cols_))};
}

std::vector<ElementType> weight_types() {
  std::vector<ElementType> types;
  for (const ElementTypeTraits& t : element_types()) {
    if (t.supported) types.push_back(t.type);
  }
  return types;
}

}  // namespace edgerunner::test
