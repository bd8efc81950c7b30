#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backend/cuda/segment.h"

namespace edgerunner::cuda {

// Rearranges `rows` rows of blocks as they stand in the file into device rows (segment.h), writing
// to `to`, which is row 0 of them. All pointers are device memory.
void launch_repack(ElementType type, std::uint32_t cols, const std::uint8_t* from, std::uint8_t* to,
                   std::uint32_t rows, cudaStream_t stream);

// Fills `rows` rows of file blocks with random weights whose spread is about 0.02 (a trained
// matrix's), reproducible from `seed` and the row's number: codes are uniform bits, scales vary by
// a factor of two.
void launch_random_blocks(ElementType type, std::uint32_t cols, std::uint8_t* to,
                          std::uint32_t first_row, std::uint32_t rows, std::uint64_t seed,
                          cudaStream_t stream);

}  // namespace edgerunner::cuda
