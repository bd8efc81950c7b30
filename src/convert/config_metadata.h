#pragma once

#include <string_view>
#include <vector>

#include "convert/dimensions.h"
#include "convert/family.h"

namespace edgerunner::convert {

// A small tensor that GGUF has where config.json has numbers.
struct FactorTensor {
  std::string_view name;
  std::vector<float> values;
};

// Sets the keys of the architecture. Returns the tensors of RoPE factors that stand beside them.
std::vector<FactorTensor> add_config_metadata(const Config& config, const Family& family,
                                              const Dimensions& dimensions, MetadataKeys& keys);

// The part about RoPE: base, dimensions, and linear, YaRN, Llama 3 and LongRoPE scaling.
std::vector<FactorTensor> add_rope_metadata(const Config& config, const Dimensions& dimensions,
                                            MetadataKeys& keys);

}  // namespace edgerunner::convert
