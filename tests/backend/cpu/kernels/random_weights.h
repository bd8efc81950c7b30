#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "arch/weights.h"
#include "tensor/dequantize.h"
#include "tensor/element_type.h"

namespace edgerunner::test {

// Random blocks of any supported type, with scales such that weights are of the order of 1, at an
// address that is a multiple of nothing but `misalignment`.
class RandomWeights {
 public:
  RandomWeights(ElementType type, std::uint32_t rows, std::uint32_t cols, std::uint32_t seed,
                std::size_t misalignment = 1);

  // The first `rows` rows; exactly their bytes.
  Matrix matrix(std::uint32_t rows) const;
  // What the blocks stand for, [rows, cols].
  const std::vector<float>& values() const { return values_; }

 private:
  ElementType type_;
  std::uint32_t cols_;
  std::size_t misalignment_;
  std::vector<std::byte> bytes_;
  std::vector<float> values_;
};

// The types that products are defined for.
std::vector<ElementType> weight_types();

}  // namespace edgerunner::test
