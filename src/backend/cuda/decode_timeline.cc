#include "backend/cuda/decode_timeline.h"

#include <array>

namespace edgerunner::cuda {
namespace {

// All blocks receive a vector at nearly the same time: a few tell as much as all.
constexpr std::uint32_t kBlocksASeen = 8;

}  // namespace

DecodeTimeline::DecodeTimeline(std::uint32_t blocks, std::uint32_t layers)
    : layers_(layers),
      block_bytes_((4 * std::size_t{layers} + 1) * kTimelinePoints * sizeof(long long)),
      clocks_(blocks * block_bytes_),
      seen_((blocks + kBlocksASeen - 1) / kBlocksASeen),
      host_(seen_ * block_bytes_) {}

std::vector<std::pair<Operation, double>> DecodeTimeline::shares() {
  check(cudaMemcpy2D(host_.as<void>(), block_bytes_, clocks_.as<void>(),
                     kBlocksASeen * block_bytes_, block_bytes_, seen_, cudaMemcpyDeviceToHost),
        "fetching the timeline");
  double embedding = 0;
  double attention = 0;
  double head = 0;
  constexpr std::array kPhases = {Operation::qkv, Operation::attention_output, Operation::gate_up,
                                  Operation::down};
  std::array<double, kPhases.size()> phases{};
  const std::uint32_t steps = 4 * layers_;
  for (std::uint32_t block = 0; block < seen_; ++block) {
    const long long* const clocks =
        host_.as<long long>() + block * (block_bytes_ / sizeof(long long));
    const auto at = [&](std::uint32_t step, std::size_t point) {
      return static_cast<double>(clocks[step * kTimelinePoints + point]);
    };
    embedding += at(0, kPhaseReceived) - at(0, kPhaseBegun);
    for (std::uint32_t step = 0; step < steps; ++step) {
      const double next = at(step + 1, kPhaseReceived);
      if (step % 4 == 0) {
        phases[0] += at(step, kPhaseRowsDone) - at(step, kPhaseReceived);
        attention += next - at(step, kPhaseRowsDone);
      } else {
        phases[step % 4] += next - at(step, kPhaseReceived);
      }
    }
    head += at(steps, kPhaseRowsDone) - at(steps, kPhaseReceived);
  }
  std::vector<std::pair<Operation, double>> shares = {{Operation::embedding, embedding},
                                                      {Operation::attention, attention},
                                                      {Operation::head, head}};
  for (std::size_t i = 0; i < kPhases.size(); ++i) shares.emplace_back(kPhases[i], phases[i]);
  return shares;
}

}  // namespace edgerunner::cuda
