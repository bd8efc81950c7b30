#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "backend/executor.h"

namespace edgerunner::cpu {

// Rows of floats that a product reads.
struct InputRows {
  const std::byte* data = nullptr;  // [count, stride]
  std::uint32_t count = 0;
  std::uint32_t cols = 0;
  std::size_t stride = 0;  // in bytes

  const float* row(std::uint32_t i) const {
    return reinterpret_cast<const float*>(data + std::size_t{i} * stride);
  }
};

// Sees the inputs of every product of a forward pass before it is computed. Different matrices'
// inputs may be seen by several threads at once.
class InputObserver {
 public:
  virtual ~InputObserver() = default;
  // `weights` are those of one expert, number `expert`, where the matrix is of a mixture.
  virtual void see(const Matrix& weights, std::uint32_t expert, const InputRows& rows) = 0;
};

// make_cpu_executor in `exact`, with somebody looking on; the results are the same bits.
std::unique_ptr<Executor> make_observed_executor(const Decoder& decoder, ExecutorOptions options,
                                                 InputObserver& observer);

}  // namespace edgerunner::cpu
