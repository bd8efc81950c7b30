#pragma once

#include <cstdint>

#include "arch/decoder_spec.h"
#include "backend/cuda/device.h"
#include "backend/cuda/ops.h"
#include "backend/executor.h"

namespace edgerunner::cuda {

// The rotations of a decoder's layers: frequencies, and the turns of a batch's rows.
class Rotations {
 public:
  Rotations(const DecoderSpec& spec, const ExecutorOptions& options);
  static std::uint64_t bytes(const DecoderSpec& spec, const ExecutorOptions& options);

  // Makes the turns of the rows' positions.
  void launch(const DeviceBatch& rows, cudaStream_t stream) const;

  // What a layer's queries and keys are normed by, head by head, and rotated by.
  RotateWeights of(LayerRope which, const float* q_norm, const float* k_norm) const;

  // Of LayerRope::main: [pairs].
  const double* main_frequencies() const { return main_.frequencies.as<double>(); }

 private:
  struct Turns {
    Turns(const RopeSpec& spec, const ExecutorOptions& options);
    static std::uint64_t bytes(const RopeSpec& spec, const ExecutorOptions& options);

    RopeLayout layout;
    double magnitude;
    std::uint32_t pairs;
    DeviceBuffer frequencies;  // [pairs] double
    DeviceBuffer table;        // [max_rows, pairs] float2
  };

  float epsilon_;
  Turns main_;
  Turns local_;
};

}  // namespace edgerunner::cuda
