#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/pass_context.h"
#include "backend/cuda/prefill_ops.h"

namespace edgerunner::cuda {

// A matrix of a layer, as adapters know it.
struct Projection {
  LoraTarget target;
  const DeviceMatrix& w;
  const float* bias;
};

// half = activation(gate x) * up x, or activation(up x) where there is no gate, for the rows in
// half, where gate and up aren't multiplied in one: multiply(projection, y) sets y = W x + bias.
template <typename Multiply>
void launch_hidden_apart(const PassContext& c, std::size_t layer, const Projection& gate,
                         const Projection& up, std::uint32_t rows, const Multiply& multiply,
                         cudaStream_t stream) {
  const std::uint32_t ffn = up.w.rows;
  const bool gated = gate.w.rows > 0;
  float* const up_x = c.scratch.up.as<float>();
  float* const gate_x = c.scratch.gate.as<float>();
  const auto project = [&](const Projection& p, float* y) {
    multiply(p, y);
    c.adapt_half(layer, p.target, rows, y, ffn, stream);
  };
  project(up, up_x);
  if (gated) project(gate, gate_x);
  launch_activate_to_half(c.spec.activation, gated ? gate_x : up_x, gated ? up_x : nullptr, rows,
                          ffn, c.half_rows(), stream);
}

}  // namespace edgerunner::cuda
