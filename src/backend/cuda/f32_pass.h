#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/pass_context.h"

namespace edgerunner::cuda {

// The layers and the head of a forward pass of any number of rows in f32, an operation a kernel:
// `exact`, and what `fast` does where nothing faster knows the model.
class F32Pass {
 public:
  explicit F32Pass(const PassContext& context) : c_(context) {}

  // scratch.x through all layers.
  void layers(const DeviceBatch& rows, cudaStream_t stream) const;
  // From scratch.x to scratch.logits of the batch's `wanted` rows.
  void head(std::uint32_t wanted, cudaStream_t stream) const;

 private:
  void attention(std::size_t index, const DeviceBatch& rows, cudaStream_t stream) const;
  void feed_forward(std::size_t index, std::uint32_t rows, cudaStream_t stream) const;
  // The experts' part of a layer, left in scratch.branch.
  void mixture(std::size_t index, std::uint32_t rows, cudaStream_t stream) const;
  // Where the rows of x lie that a block reads: normed, or as they are.
  const float* normed(const Norm& norm, std::uint32_t rows, cudaStream_t stream) const;
  // y = W x + bias + what adapters add, of the layer's matrix `target`.
  struct Product {
    std::size_t layer;
    LoraTarget target;
    const DeviceMatrix& w;
    const float* bias;
    const float* x;
  };
  void multiply(const Product& product, std::uint32_t rows, float* y, std::uint32_t y_stride,
                bool add, cudaStream_t stream) const;
  // x += norm(the last product of a block).
  void add_block(const Product& product, const Norm& post_norm, std::uint32_t rows,
                 cudaStream_t stream) const;

  PassContext c_;
};

}  // namespace edgerunner::cuda
