#pragma once

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
  PassTimer& timer;
  KvPrecision kv;

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
  // Scales and caps the logits of `rows` rows where the decoder says so.
  void finish_logits(std::uint32_t rows, cudaStream_t stream) const {
    if (spec.logit_scale == 1 && spec.logit_cap == 0) return;
    launch_cap_logits(scratch.logits.as<float>(), std::uint64_t{rows} * spec.vocab_size,
                      spec.logit_scale, spec.logit_cap, stream);
  }
};

}  // namespace edgerunner::cuda
