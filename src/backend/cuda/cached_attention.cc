#include "backend/cuda/cached_attention.h"

#include "backend/cuda/attention.h"
#include "backend/cuda/ops.h"

namespace edgerunner::cuda {

void rotate_and_cache(const PassContext& c, std::size_t layer, const DeviceBatch& rows,
                      cudaStream_t stream) {
  const DeviceLayer& w = c.weights.layers()[layer];
  const BlockNorms& norms = c.weights.norms()[layer];
  const LayerSpec& spec = c.spec.layers[layer];
  const AttentionShape shape = attention_shape(spec);
  float* const qkv = c.scratch.qkv.as<float>();
  const auto norm_rows = [&](const Norm& norm, float* x, std::uint32_t dim) {
    if (norm.weight == nullptr) return;
    launch_norm(norm, {x, shape.row(), x, shape.row(), rows.rows, dim}, stream);
  };
  norm_rows(norms.q_row, qkv, shape.q_dim());
  norm_rows(norms.k_row, qkv + shape.q_dim(), shape.kv_dim());
  launch_rotate_and_cache(shape, c.rotations.of(spec.rope, w.q_norm, w.k_norm), rows, qkv,
                          c.cache.layer(layer), stream);
  c.timer.lap(Operation::rope_and_cache, stream);
}

void attend(const PassContext& c, std::size_t layer, const DeviceBatch& rows, cudaStream_t stream) {
  const AttentionShape shape = attention_shape(c.spec.layers[layer]);
  const DeviceCache& cache = c.cache.layer(layer);
  const float* const qkv = c.scratch.qkv.as<float>();
  if (!tensor_attention_supports(shape, c.kv)) {
    float* const attended = c.scratch.attended.as<float>();
    launch_attention_f32(shape, rows, qkv, cache, attended, stream);
    launch_to_half(attended, rows.rows, shape.q_dim(), c.half_rows(), stream);
  } else if (rows.rows <= kFewAttentionRows) {
    launch_attention_few(shape, rows, c.upload.parts(), c.upload.part_count(), qkv, cache,
                         c.half->partials(), c.half_rows(), stream);
  } else {
    launch_attention_half(shape, rows, c.upload.tiles(), c.upload.tile_count(), qkv, cache,
                          c.half_rows(), stream);
  }
  c.timer.lap(Operation::attention, stream);
}

void attend_cached(const PassContext& c, std::size_t layer, const DeviceBatch& rows,
                   cudaStream_t stream) {
  rotate_and_cache(c, layer, rows, stream);
  attend(c, layer, rows, stream);
}

}  // namespace edgerunner::cuda
