#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cuda/device.h"
#include "backend/cuda/few_rows.h"
#include "backend/cuda/pass_context.h"
#include "backend/cuda/projection.h"

namespace edgerunner::cuda {

// The layers and the head of a forward pass of at most most_rows() rows, fast precision: weights
// are multiplied as they stand (few_rows.h).
class FewRowsPass {
 public:
  // Whether every matrix has a type that the kernels know.
  static bool supports(const DeviceWeights& weights);

  FewRowsPass(const PassContext& context, const ExecutorOptions& options,
              const DeviceProperties& device);

  std::uint32_t most_rows() const { return most_rows_; }

  // scratch.x through all layers.
  void layers(const DeviceBatch& rows, cudaStream_t stream) const;
  // From scratch.x to scratch.logits of the batch's `wanted` rows.
  void head(std::uint32_t wanted, cudaStream_t stream) const;

 private:
  // W x, in parts, for the rows in half: of `outputs` outputs from w.first on, or of a whole
  // matrix. The next product overwrites them.
  PartialProduct multiply(const StackedMatrices& w, std::uint32_t outputs, std::uint32_t rows,
                          cudaStream_t stream) const;
  PartialProduct multiply(const DeviceMatrix& w, std::uint32_t rows, cudaStream_t stream) const;
  // y = W x + bias for matrices whose outputs follow each other in y.
  void project(std::span<const Projection> projections, std::uint32_t rows, float* y,
               std::uint32_t y_stride, cudaStream_t stream) const;
  void attention(std::size_t index, const DeviceBatch& rows, cudaStream_t stream) const;
  // Queries into scratch.qkv, keys and values into the cache, for the rows in half.
  void queries(std::size_t index, const DeviceBatch& rows, cudaStream_t stream) const;
  void feed_forward(std::size_t index, std::uint32_t rows, cudaStream_t stream) const;
  // half = activation(gate x) * up x, or activation(up x) where there is no gate, for the rows in
  // half.
  void hidden(std::size_t layer, const Projection& gate, const Projection& up, std::uint32_t rows,
              cudaStream_t stream) const;
  // The experts' part of a layer, left in scratch.branch, for the rows in half and scratch.normed.
  void mixture(std::size_t index, std::uint32_t rows, cudaStream_t stream) const;
  // The norm that comes next, if any: half = norm(x), and scratch.normed as well where wanted.
  struct NextNorm {
    const Norm* norm = nullptr;
    bool in_f32 = false;
    ColumnOrder order = ColumnOrder::operand;  // that whoever comes first wants
  };
  void apply(const NextNorm& next, std::uint32_t rows, cudaStream_t stream) const;
  // x += post_norm(W x + bias) for the rows in half, the last product of a block; then the next
  // norm.
  void add_block(std::size_t layer, const Projection& last, const Norm& post_norm,
                 const NextNorm& next, std::uint32_t rows, cudaStream_t stream) const;
  // The same for what a block has left in scratch.branch.
  void add_branch(const Norm& post_norm, const NextNorm& next, std::uint32_t rows,
                  cudaStream_t stream) const;

  PassContext c_;
  std::uint32_t blocks_;
  std::uint32_t most_rows_;
};

}  // namespace edgerunner::cuda
