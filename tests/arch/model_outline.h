#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "gguf/metadata_value.h"
#include "tensor/element_type.h"

namespace edgerunner::test {

struct TensorOutline {
  ElementType type = ElementType::f32;
  std::vector<std::uint64_t> shape;
};

// The metadata and tensor shapes of a small model, to be changed by a test and then written with
// zeros for weights.
struct ModelOutline {
  std::map<std::string, gguf::MetadataValue> metadata;
  std::map<std::string, TensorOutline> tensors;

  void write(const std::filesystem::path& path) const;
};

// A decoder of two layers, dim 32, four heads of 8 over two key/value heads, 48 feed-forward rows,
// 40 tokens, as the family's converter would write it.
ModelOutline model_outline(const std::string& architecture);

}  // namespace edgerunner::test
