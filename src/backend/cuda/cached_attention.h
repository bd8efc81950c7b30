#pragma once

#include <cstddef>

#include "backend/cuda/pass_context.h"

namespace edgerunner::cuda {

// Norms, rotates and caches a layer's queries, keys and values of any number of rows, as they lie
// in scratch.qkv.
void rotate_and_cache(const PassContext& c, std::size_t layer, const DeviceBatch& rows,
                      cudaStream_t stream);

// Attention of a layer whose queries lie there, rotated, and whose cache has the rows' keys and
// values; fast precision: to the heads' outputs in half.
void attend(const PassContext& c, std::size_t layer, const DeviceBatch& rows, cudaStream_t stream);

// Both.
void attend_cached(const PassContext& c, std::size_t layer, const DeviceBatch& rows,
                   cudaStream_t stream);

}  // namespace edgerunner::cuda
