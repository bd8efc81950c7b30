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

  // What each operation has taken of the latest token, in clock cycles of some blocks: from the
  // moment that a block had its input to the moment that it had what came out, so that waiting
  // counts for those that are waited for. The stream must have come so far.
  std::vector<std::pair<Operation, double>> shares();

 private:
  std::uint32_t layers_;
  std::size_t block_bytes_;  // of one block's clocks
  DeviceBuffer clocks_;
  std::uint32_t seen_;  // blocks whose clocks are looked at, one in kBlocksASeen
  PinnedBuffer host_;   // [seen][4 * layers + 1][kTimelinePoints]
};

}  // namespace edgerunner::cuda
