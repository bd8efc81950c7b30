#pragma once

namespace edgerunner::cuda {

// GELU by its tanh approximation (Hendrycks and Gimpel 2016).
__device__ inline float gelu_tanh(float x) {
  constexpr float kSqrt2OverPi = 0.79788456F;
  return 0.5F * x * (1.0F + tanhf(kSqrt2OverPi * (x + 0.044715F * x * x * x)));
}

// cap * tanh(x / cap), or x where there is no cap.
__device__ inline float capped(float x, float cap) { return cap == 0 ? x : cap * tanhf(x / cap); }

}  // namespace edgerunner::cuda
