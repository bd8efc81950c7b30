#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/adapters.h"
#include "backend/cuda/buffers.h"
#include "backend/cuda/device_weights.h"
#include "backend/cuda/ops.h"
#include "backend/cuda/pass_timer.h"
#include "backend/cuda/rotations.h"

namespace edgerunner::cuda {

// What a pass works on; all of it outlives the pass.
struct PassContext {
  const DecoderSpec& spec;
  const DeviceWeights& weights;
  const CachePool& cache;
  const Rotations& rotations;
  const Scratch& scratch;
  const HalfScratch* half;  // null in exact
  const BatchUpload& upload;
  const Adapters& adapters;
  PassTimer& timer;
  KvPrecision kv;
  ColumnOrder order = ColumnOrder::natural;  // of the rows in half

  HalfRows half_rows() const { return half->rows(order); }
  // Whether what a block makes is added to the residual stream as it comes.
  bool adds_directly(const Norm& post_norm) const {
    return post_norm.weight == nullptr && spec.residual_scale == 1;
  }
  // Adds what it made, in scratch.branch, where it is not.
  void add_branch(const Norm& post_norm, std::uint32_t rows, cudaStream_t stream) const {
    launch_add_branch(scratch.branch.as<float>(), post_norm, spec.residual_scale, rows, spec.dim,
                      scratch.x.as<float>(), stream);
  }
  // scratch.normed = norm(x), of the rows `chosen` where they are given.
  void norm(const Norm& by, std::uint32_t rows, const std::uint32_t* chosen,
            cudaStream_t stream) const {
    launch_norm(by,
                {scratch.x.as<float>(), spec.dim, scratch.normed.as<float>(), spec.dim, rows,
                 spec.dim, chosen},
                stream);
  }
  // What adapters add to a product of the batch's rows.
  void adapt(std::size_t layer, LoraTarget target, const AdapterInput& x, std::uint32_t rows,
             float* y, std::uint32_t y_stride, cudaStream_t stream) const {
    adapters.apply(layer, target, x, rows, nullptr, y, y_stride, stream);
  }
  // The same for the rows in half; and for all three products in scratch.qkv.
  void adapt_half(std::size_t layer, LoraTarget target, std::uint32_t rows, float* y,
                  std::uint32_t y_stride, cudaStream_t stream) const {
    adapt(layer, target, {nullptr, half_rows()}, rows, y, y_stride, stream);
  }
  void adapt_half_qkv(std::size_t layer, const AttentionShape& shape, std::uint32_t rows,
                      cudaStream_t stream) const {
    float* const q = scratch.qkv.as<float>();
    float* const k = q + shape.q_dim();
    float* const v = k + shape.kv_dim();
    adapt_half(layer, LoraTarget::q, rows, q, shape.row(), stream);
    adapt_half(layer, LoraTarget::k, rows, k, shape.row(), stream);
    adapt_half(layer, LoraTarget::v, rows, v, shape.row(), stream);
  }
  // What they add to the logits of `rows` rows, made from scratch.normed; then scales and caps
  // those where the decoder says so.
  void finish_logits(std::uint32_t rows, cudaStream_t stream) const {
    adapters.apply(0, LoraTarget::head, {scratch.normed.as<float>(), {}}, rows, upload.logit_rows(),
                   scratch.logits.as<float>(), spec.vocab_size, stream);
    if (spec.logit_scale == 1 && spec.logit_cap == 0) return;
    launch_cap_logits(scratch.logits.as<float>(), std::uint64_t{rows} * spec.vocab_size,
                      spec.logit_scale, spec.logit_cap, stream);
  }
};

}  // namespace edgerunner::cuda
