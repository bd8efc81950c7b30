#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/device.h"
#include "backend/cuda/pass_context.h"
#include "backend/cuda/prefill_ops.h"
#include "backend/cuda/projection.h"

namespace edgerunner::cuda {

// The layers and the head of a forward pass of many rows, fast precision: every matrix is unpacked
// to f16 once for all rows, then multiplied on the tensor cores.
class HalfPass {
 public:
  HalfPass(const PassContext& context, const DeviceProperties& device)
      : c_(context), wgmma_(wgmma_supports(device.major)) {}

  // scratch.x through all layers.
  void layers(const DeviceBatch& rows, cudaStream_t stream) const;
  // From scratch.x to scratch.logits of the batch's `wanted` rows.
  void head(std::uint32_t wanted, cudaStream_t stream) const;

 private:
  // y (+)= W x + bias for the rows in half, the matrix unpacked part by part.
  void multiply(const DeviceMatrix& w, const float* bias, float* y, std::uint32_t y_stride,
                std::uint32_t rows, bool add, cudaStream_t stream) const;
  void launch(const HalfMatmul& m, cudaStream_t stream) const;
  // A layer's queries, keys and values, side by side in scratch.qkv, for the rows in half.
  void project(const DeviceLayer& w, std::uint32_t y_stride, std::uint32_t rows,
               cudaStream_t stream) const;
  void attention(std::size_t index, const DeviceBatch& rows, cudaStream_t stream) const;
  void feed_forward(std::size_t index, std::uint32_t rows, cudaStream_t stream) const;
  // half = activation(gate x) * up x, or activation(up x) where there is no gate, for the rows in
  // half.
  void hidden(std::size_t layer, const Projection& gate, const Projection& up, std::uint32_t rows,
              cudaStream_t stream) const;
  // The experts' part of a layer, left in scratch.branch.
  void mixture(std::size_t index, std::uint32_t rows, cudaStream_t stream) const;
  // x += norm(W x + bias) for the rows in half, the last product of a block.
  void add_block(std::size_t layer, const Projection& last, const Norm& post_norm,
                 std::uint32_t rows, cudaStream_t stream) const;

  PassContext c_;
  bool wgmma_;
};

}  // namespace edgerunner::cuda
