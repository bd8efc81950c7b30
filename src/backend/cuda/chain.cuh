#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <utility>

// Kernels of one stream in a chain: on Hopper the next kernel's blocks start while the last ones of
// this kernel still run (programmatic dependent launch). Source: CUDA programming guide,
// "Programmatic Dependent Launch and Synchronization". Elsewhere a kernel simply follows the other.
//
// Every kernel of a chain calls wait_for_previous() in every thread before it reads what an earlier
// kernel wrote, and before it writes anything. That waits for the whole of the previous kernel,
// which itself has waited for the one before: so nothing earlier is still at work.

namespace edgerunner::cuda {

__device__ inline void wait_for_previous() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// Lets the next kernel's blocks start, where there is room for them, as soon as every block of this
// one has come here. Most kernels call it first of all: the next one waits for the whole of this
// one anyway, and its weights are on their way meanwhile. Those of many more blocks than find room
// at once call it after waiting, so that the next one's blocks don't take that room.
__device__ inline void let_next_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// What the device has of an attribute; 0 where there is no device.
template <cudaDeviceAttr kAttribute>
int device_attribute() {
  static const int result = [] {
    int device = 0;
    int value = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&value, kAttribute, device);
    return value;
  }();
  return result;
}
// The first number of its compute capability.
inline int device_major() { return device_attribute<cudaDevAttrComputeCapabilityMajor>(); }

inline bool chains_kernels() { return device_major() >= 9; }

// `cluster` neighbouring blocks of the grid's first dimension run together (Hopper), if not 1.
template <typename... Parameters, typename... Arguments>
void launch_chained_clusters(unsigned cluster, void (*kernel)(Parameters...), dim3 grid,
                             unsigned threads, std::size_t shared_bytes, cudaStream_t stream,
                             Arguments&&... arguments) {
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {cluster, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = chains_kernels() ? (cluster == 1 ? 1 : 2) : 0;
  cudaLaunchKernelEx(&config, kernel, Parameters(std::forward<Arguments>(arguments))...);
}

template <typename... Parameters, typename... Arguments>
void launch_chained(void (*kernel)(Parameters...), dim3 grid, unsigned threads,
                    std::size_t shared_bytes, cudaStream_t stream, Arguments&&... arguments) {
  launch_chained_clusters(1, kernel, grid, threads, shared_bytes, stream,
                          std::forward<Arguments>(arguments)...);
}

}  // namespace edgerunner::cuda
