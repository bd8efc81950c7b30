#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "arch/decoder.h"

namespace edgerunner {

// Bytes of a decoder's matrices, one that is used twice (a tied head) counted once.
std::uint64_t matrix_bytes(const Weights& weights);

// Random weights for a decoder that is known by shape alone (shape_decoder): speed doesn't depend
// on the values, as long as they are finite. A pattern of some thousand random blocks of each
// matrix's type, repeated to its end.
class RandomTensors {
 public:
  // Gives every matrix of `weights` its data; must outlive their use.
  explicit RandomTensors(Weights& weights);

 private:
  void fill(Matrix& matrix);

  std::map<ElementType, std::vector<std::byte>> patterns_;
  std::vector<std::unique_ptr<std::byte[]>> storage_;
};

}  // namespace edgerunner
