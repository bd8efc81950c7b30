#pragma once

#include "backend/cuda/buffers.h"
#include "backend/cuda/device_weights.h"
#include "backend/cuda/pass_timer.h"

namespace edgerunner::cuda {

// What a pass works on; all of it outlives the pass.
struct PassContext {
  const DecoderSpec& spec;
  const DeviceWeights& weights;
  const CachePool& cache;
  const Scratch& scratch;
  const HalfScratch& half;
  const BatchUpload& upload;
  PassTimer& timer;
  KvPrecision kv;
};

}  // namespace edgerunner::cuda
