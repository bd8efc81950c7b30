#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "arch/adapter_set.h"
#include "backend/cuda/adapter_ops.h"
#include "backend/cuda/device.h"
#include "backend/executor.h"

namespace edgerunner::cuda {

// The adapters that sequences may have (ExecutorOptions::adapters) in device memory, in f32, and
// which rows of the batch have them. A batch without adapters costs nothing.
class Adapters {
 public:
  explicit Adapters(const ExecutorOptions& options);
  static std::uint64_t bytes(const ExecutorOptions& options);

  // Tells the device which rows have which adapters. Throws Error(invalid_argument) for one that
  // the executor was not made for.
  void begin(const Batch& batch, cudaStream_t stream);

  // Whether any row of the batch has any; which of the executor's; and whether those change any of
  // a layer's matrices.
  bool any() const;
  std::vector<bool> used() const;
  bool change(std::size_t layer, std::initializer_list<LoraTarget> targets) const;

  // y += scale * B (A x) for the rows that have adapters of the matrix, `chosen` of the batch or
  // all of it.
  void apply(std::size_t layer, LoraTarget target, const AdapterInput& x, std::uint32_t rows,
             const std::uint32_t* chosen, float* y, std::uint32_t y_stride,
             cudaStream_t stream) const;
  // What they add to the tokens' rows of the embedding, times `factor`: x[rows, dim].
  void apply_embedding(const DeviceBatch& rows, float factor, float* x, cudaStream_t stream) const;

 private:
  struct Loaded {
    const LoraAdapter* adapter = nullptr;
    std::vector<std::array<DeviceLowRank, kLayerTargets>> layers;
    DeviceLowRank head;
    DeviceLowRank embedding;
    bool used = false;  // by the batch

    const DeviceLowRank& update(std::size_t layer, LoraTarget target) const {
      return target == LoraTarget::head ? head : layers[layer][static_cast<std::size_t>(target)];
    }
  };

  AdaptedRows rows_of(std::size_t index, std::uint32_t rows, const std::uint32_t* chosen) const;

  std::uint32_t max_rows_;
  std::vector<Loaded> loaded_;
  DeviceBuffer matrices_;
  PinnedBuffer host_scales_;
  DeviceBuffer scales_;  // [adapters, max_rows]
  DeviceBuffer low_;     // [max_rows, largest rank]
};

}  // namespace edgerunner::cuda
