#include "backend/cuda/cached_attention.h"

#include "backend/cuda/ops.h"
#include "backend/cuda/prefill_ops.h"

namespace edgerunner::cuda {

void attend_cached(const PassContext& c, std::size_t layer, const DeviceBatch& rows,
                   cudaStream_t stream) {
  const DeviceLayer& w = c.weights.layers()[layer];
  const AttentionShape shape = attention_shape(c.spec.layers[layer]);
  const DeviceCache& cache = c.cache.layer(layer);
  float* const qkv = c.scratch.qkv.as<float>();
  launch_rotate_and_cache(
      shape,
      {w.q_norm, w.k_norm, c.spec.norm_epsilon, c.scratch.rope_table.as<float2>(),
       static_cast<std::uint32_t>(c.spec.rope.inverse_frequencies.size()), c.spec.rope.layout},
      rows, qkv, cache, stream);
  c.timer.lap(Operation::rope_and_cache, stream);
  if (tensor_attention_supports(shape, c.kv)) {
    launch_attention_half(shape, rows, c.upload.tiles(), c.upload.tile_count(), qkv, cache,
                          c.half.rows(), stream);
  } else {
    float* const attended = c.scratch.attended.as<float>();
    launch_attention_f32(shape, rows, qkv, cache, attended, stream);
    launch_to_half(attended, rows.rows, shape.q_dim(), c.half.rows(), stream);
  }
  c.timer.lap(Operation::attention, stream);
}

}  // namespace edgerunner::cuda
