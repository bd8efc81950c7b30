#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convert/config_metadata.h"
#include "convert/dimensions.h"
#include "convert/family.h"
#include "convert/model_folder.h"
#include "quantize/row_writer.h"

namespace edgerunner::convert {

// A tensor of the GGUF file and where its rows come from.
struct PlannedTensor {
  std::string name;
  std::vector<std::uint64_t> shape;  // fastest-varying first
  RowSource source;
  // The source's type, but F32 for vectors and routers, which stay so whatever the recipe.
  ElementType natural = ElementType::f32;
};

// Every tensor of the folder under its GGUF name, layer by layer: experts stacked, rows of q and k
// in GGUF's order. `factors` must outlive the plan, as must the folder. Throws
// Error(invalid_file) naming the tensor that is missing or has the wrong shape, Error(unsupported)
// for one that has no place in the family.
std::vector<PlannedTensor> plan_tensors(const ModelFolder& folder, const Family& family,
                                        const Dimensions& dimensions,
                                        const std::vector<FactorTensor>& factors);

}  // namespace edgerunner::convert
