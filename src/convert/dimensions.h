#pragma once

#include <cstdint>

#include "convert/config.h"

namespace edgerunner::convert {

// The sizes that tensors and metadata need, from a config.json.
struct Dimensions {
  std::uint32_t dim = 0;
  std::uint32_t layers = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t vocab = 0;
  std::uint32_t experts = 0;  // 0: dense
  bool named_head_dim = false;
  bool tied_head = false;

  // Throws Error(invalid_file) that names the key.
  static Dimensions of(const Config& config);
};

}  // namespace edgerunner::convert
