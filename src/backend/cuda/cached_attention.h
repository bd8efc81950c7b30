#pragma once

#include <cstddef>

#include "backend/cuda/pass_context.h"

namespace edgerunner::cuda {

// A layer's attention for any number of rows, fast precision: from queries, keys and values in
// scratch.qkv, which it rotates and caches, to the heads' outputs in half.
void attend_cached(const PassContext& c, std::size_t layer, const DeviceBatch& rows,
                   cudaStream_t stream);

}  // namespace edgerunner::cuda
