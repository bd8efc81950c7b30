#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "backend/cuda/decode_plan.h"
#include "backend/operation_times.h"

namespace edgerunner::cuda {

// The clocks that the decode kernel notes down (DecodeIo::timeline), fetched and summed up.
class DecodeTimeline {
 public:
  DecodeTimeline(std::uint32_t blocks, std::uint32_t layers);

  long long* device() const { return clocks_.as<long long>(); }

  // What each operation has taken of the latest token, in clock cycles of all blocks; a block's
  // waiting for the others counts where it waits. The stream must have come so far.
  std::vector<std::pair<Operation, double>> shares();

 private:
  std::uint32_t blocks_;
  std::uint32_t layers_;
  DeviceBuffer clocks_;
  std::vector<long long> host_;  // [blocks][4 * layers + 1][kTimelinePoints]
};

}  // namespace edgerunner::cuda
