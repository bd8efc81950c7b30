#pragma once

#include <cstddef>
#include <vector>

#include "backend/cuda/device.h"

namespace edgerunner::test {

// Values brought to the device; and a buffer's bytes brought back.
template <typename T>
cuda::DeviceBuffer upload(const std::vector<T>& values) {
  cuda::DeviceBuffer buffer(values.size() * sizeof(T));
  cuda::check(cudaMemcpy(buffer.as<void>(), values.data(), buffer.size(), cudaMemcpyHostToDevice),
              "uploading");
  return buffer;
}
inline std::vector<std::byte> fetch(const cuda::DeviceBuffer& buffer) {
  std::vector<std::byte> bytes(buffer.size());
  cuda::check(cudaMemcpy(bytes.data(), buffer.as<void>(), bytes.size(), cudaMemcpyDeviceToHost),
              "fetching");
  return bytes;
}

}  // namespace edgerunner::test
