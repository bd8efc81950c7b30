#include "backend/cuda/decode_timeline.h"

#include <array>

namespace edgerunner::cuda {
namespace {

// Points of a phase (decode_plan.h).
constexpr std::size_t kBegun = 0;
constexpr std::size_t kReceived = 1;
constexpr std::size_t kRowsDone = 3;
constexpr std::size_t kBlockDone = 4;

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
    embedding += at(0, kReceived) - at(0, kBegun);
    for (std::uint32_t step = 0; step < steps; ++step) {
      const double next = at(step + 1, kReceived);
      if (step % 4 == 0) {
        phases[0] += at(step, kBlockDone) - at(step, kReceived);
        attention += next - at(step, kBlockDone);
      } else {
        phases[step % 4] += next - at(step, kReceived);
      }
    }
    head += at(steps, kRowsDone) - at(steps, kReceived);
  }
  std::vector<std::pair<Operation, double>> shares = {{Operation::embedding, embedding},
                                                      {Operation::attention, attention},
                                                      {Operation::head, head}};
  for (std::size_t i = 0; i < kPhases.size(); ++i) shares.emplace_back(kPhases[i], phases[i]);
  return shares;
}

}  // namespace edgerunner::cuda
