#include "backend/cuda/decode_timeline.h"

#include <array>

namespace edgerunner::cuda {
namespace {

// Points of a phase (decode_plan.h).
constexpr std::size_t kBegun = 0;
constexpr std::size_t kRowsDone = 3;
constexpr std::size_t kBlockDone = 4;
constexpr std::size_t kAttentionDone = 5;

}  // namespace

DecodeTimeline::DecodeTimeline(std::uint32_t blocks, std::uint32_t layers)
    : blocks_(blocks),
      layers_(layers),
      clocks_(std::size_t{blocks} * (4 * std::size_t{layers} + 1) * kTimelinePoints *
              sizeof(long long)),
      host_(clocks_.size() / sizeof(long long)) {}

std::vector<std::pair<Operation, double>> DecodeTimeline::shares() {
  check(cudaMemcpy(host_.data(), clocks_.as<void>(), clocks_.size(), cudaMemcpyDeviceToHost),
        "fetching the timeline");
  constexpr std::array kPhases = {Operation::qkv, Operation::attention_output, Operation::gate_up,
                                  Operation::down};
  std::array<double, kPhases.size()> phases{};
  double attention = 0;
  double head = 0;
  for (std::uint32_t block = 0; block < blocks_; ++block) {
    const auto at = [&](std::uint32_t step, std::size_t point) {
      return static_cast<double>(
          host_[(std::size_t{block} * (4 * layers_ + 1) + step) * kTimelinePoints + point]);
    };
    for (std::uint32_t step = 0; step < 4 * layers_; ++step) {
      phases[step % 4] += at(step, kBlockDone) - at(step, kBegun);
      if (step % 4 == 0) attention += at(step, kAttentionDone) - at(step, kBlockDone);
    }
    head += at(4 * layers_, kRowsDone) - at(4 * layers_, kBegun);
  }
  std::vector<std::pair<Operation, double>> shares;
  for (std::size_t i = 0; i < kPhases.size(); ++i) shares.emplace_back(kPhases[i], phases[i]);
  shares.emplace_back(Operation::attention, attention);
  shares.emplace_back(Operation::head, head);
  return shares;
}

}  // namespace edgerunner::cuda
