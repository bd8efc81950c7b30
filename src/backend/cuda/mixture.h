#pragma once

#include <cstddef>
#include <cstdint>

#include "arch/decoder_spec.h"
#include "backend/cuda/device.h"
#include "backend/cuda/mixture_ops.h"
#include "backend/executor.h"

namespace edgerunner::cuda {

struct PassContext;

// What mixtures of experts write, allocated once: nothing in models without them.
class MixtureScratch {
 public:
  MixtureScratch(const DecoderSpec& spec, const ExecutorOptions& options);
  static std::uint64_t bytes(const DecoderSpec& spec, const ExecutorOptions& options);

  ExpertRows rows;
  float* scores = nullptr;   // [max_rows, experts]
  float* share = nullptr;    // [max_rows], of the shared expert
  float* outputs = nullptr;  // [slots, dim]

 private:
  // Where each array begins in the memory, in bytes.
  struct Layout {
    Layout(const DecoderSpec& spec, const ExecutorOptions& options);
    std::size_t experts, weights, slots, sources, tiles, tile_count, scores, share, outputs;
    std::size_t total;
  };
  DeviceBuffer memory_;
};

// The chosen experts of a layer for the rows in scratch.normed, added up in scratch.branch; what a
// shared expert left there beforehand is taken in by its share. In f32:
void mix_f32(const PassContext& c, std::size_t layer, std::uint32_t rows, cudaStream_t stream);
// The same with f16 operands, for the rows in scratch.normed, which half holds as well. The
// router stays in f32: to choose another expert would be no small error.
void mix_half(const PassContext& c, std::size_t layer, std::uint32_t rows, cudaStream_t stream);

}  // namespace edgerunner::cuda
