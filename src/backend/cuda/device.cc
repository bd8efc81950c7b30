#include "backend/cuda/device.h"

#include <fmt/format.h>

#include <atomic>
#include <cstring>

#include "edgerunner/error.h"

namespace edgerunner::cuda {
namespace {
std::atomic<std::uint64_t> allocation_count{0};
}

void check(cudaError_t status, std::string_view doing) {
  if (status == cudaSuccess) return;
  const ErrorCode code =
      status == cudaErrorMemoryAllocation ? ErrorCode::out_of_memory : ErrorCode::device;
  throw Error(code, fmt::format("the GPU failed while {}: {}", doing, cudaGetErrorString(status)));
}

DeviceProperties device_properties() {
  cudaDeviceProp found{};
  check(cudaGetDeviceProperties(&found, 0), "looking for a GPU");
  DeviceProperties properties{};
  std::memcpy(properties.name, found.name, sizeof(properties.name));
  properties.major = found.major;
  properties.minor = found.minor;
  properties.multiprocessors = found.multiProcessorCount;
  properties.shared_bytes_per_block = found.sharedMemPerBlockOptin;
  check(cudaMemGetInfo(&properties.free_bytes, &properties.total_bytes), "asking for free memory");
  return properties;
}

DeviceBuffer::DeviceBuffer(std::size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  check(cudaMalloc(&data_, bytes), fmt::format("allocating {} bytes", bytes));
  ++allocation_count;
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ != nullptr) cudaFree(data_);
}

std::uint64_t DeviceBuffer::allocations() { return allocation_count; }

PinnedBuffer::PinnedBuffer(std::size_t bytes) {
  if (bytes == 0) return;
  check(cudaMallocHost(&data_, bytes), fmt::format("allocating {} bytes of pinned memory", bytes));
}

PinnedBuffer::~PinnedBuffer() {
  if (data_ != nullptr) cudaFreeHost(data_);
}

Stream::Stream() {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream");
}

Stream::~Stream() { cudaStreamDestroy(stream_); }

void Stream::synchronize() const {
  check(cudaStreamSynchronize(stream_), "waiting for a forward pass");
}

Event::Event() { check(cudaEventCreate(&event_), "creating an event"); }

Event::~Event() { cudaEventDestroy(event_); }

}  // namespace edgerunner::cuda
