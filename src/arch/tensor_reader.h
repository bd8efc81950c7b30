#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arch/weights.h"
#include "gguf/file.h"

namespace edgerunner {

// Finds tensors by name and checks type and shape. Errors name the tensor, what was wanted and what
// was found. It keeps account of the tensors taken, so that a file with tensors that nobody asked
// for, and which would change the result, is refused instead of computed without them.
class TensorReader {
 public:
  explicit TensorReader(const gguf::File& file);

  // [rows, cols]; rows 0 means whatever the file has.
  Matrix matrix(std::string_view name, std::uint32_t rows, std::uint32_t cols);
  // `count` matrices of [rows, cols] one after another, as one of [count * rows, cols], which must
  // fit 32 bits.
  Matrix matrices(std::string_view name, std::uint32_t count, std::uint32_t rows,
                  std::uint32_t cols);
  bool has(std::string_view name) const;

  Vector vector(std::string_view name, std::uint32_t length);
  Vector optional_vector(std::string_view name, std::uint32_t length);  // empty where absent

  // Throws Error(unsupported) naming the first tensor that was not taken.
  void require_all_taken() const;

 private:
  const gguf::Tensor& take(std::string_view name);

  const gguf::File* file_;
  std::vector<bool> taken_;  // [tensors]
};

}  // namespace edgerunner
