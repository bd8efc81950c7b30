#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace edgerunner::test {

// Copies `bytes` (a multiple of 4) on the device, from a kernel that lets its successor begin at
// once and only then sleeps for 100 us and copies.
void launch_late_copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream);

}  // namespace edgerunner::test
