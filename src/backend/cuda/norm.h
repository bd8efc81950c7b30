#pragma once

namespace edgerunner::cuda {

// How a row is normed; vectors are device memory. RMSNorm, or LayerNorm where a bias is given;
// without a weight the row stays as it is.
struct Norm {
  const float* weight = nullptr;
  const float* bias = nullptr;
  float epsilon = 0;
};

}  // namespace edgerunner::cuda
