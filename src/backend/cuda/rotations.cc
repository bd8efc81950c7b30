#include "backend/cuda/rotations.h"

namespace edgerunner::cuda {

Rotations::Turns::Turns(const RopeSpec& spec, const ExecutorOptions& options)
    : layout(spec.layout),
      magnitude(spec.magnitude),
      pairs(static_cast<std::uint32_t>(spec.inverse_frequencies.size())),
      frequencies(pairs * sizeof(double)),
      table(std::size_t{options.max_rows} * pairs * sizeof(float2)) {
  const std::span<const double> chosen = spec.frequencies(options.max_context);
  check(cudaMemcpy(frequencies.as<double>(), chosen.data(), chosen.size_bytes(),
                   cudaMemcpyHostToDevice),
        "uploading the rotary frequencies");
}

std::uint64_t Rotations::Turns::bytes(const RopeSpec& spec, const ExecutorOptions& options) {
  return spec.inverse_frequencies.size() *
         (sizeof(double) + std::uint64_t{options.max_rows} * sizeof(float2));
}

Rotations::Rotations(const DecoderSpec& spec, const ExecutorOptions& options)
    : epsilon_(spec.norm_epsilon), main_(spec.rope, options), local_(spec.local_rope, options) {}

std::uint64_t Rotations::bytes(const DecoderSpec& spec, const ExecutorOptions& options) {
  return Turns::bytes(spec.rope, options) + Turns::bytes(spec.local_rope, options);
}

void Rotations::launch(const DeviceBatch& rows, cudaStream_t stream) const {
  for (const Turns* turns : {&main_, &local_}) {
    launch_rope_table(rows, turns->frequencies.as<double>(), turns->pairs, turns->magnitude,
                      turns->table.as<float2>(), stream);
  }
}

RotateWeights Rotations::of(LayerRope which, const float* q_norm, const float* k_norm) const {
  const Turns& turns = which == LayerRope::local ? local_ : main_;
  const std::uint32_t pairs = which == LayerRope::none ? 0 : turns.pairs;
  return {q_norm, k_norm, epsilon_, turns.table.as<float2>(), pairs, turns.layout};
}

}  // namespace edgerunner::cuda
