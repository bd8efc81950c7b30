#include "backend/cpu/rope_table.h"

#include <cmath>

namespace edgerunner::cpu {

std::size_t RopeTable::bytes(const RopeSpec& rope, std::uint32_t max_context) {
  return rope.inverse_frequencies.size() * 2 * 2 * sizeof(float) * max_context;
}

RopeTable::RopeTable(const RopeSpec& rope, std::uint32_t max_context)
    : rope_(rope),
      frequencies_(rope.frequencies(max_context)),
      dims_(static_cast<std::uint32_t>(2 * rope.inverse_frequencies.size())),
      memory_(bytes(rope, max_context)) {}

void RopeTable::fill(std::uint32_t position) {
  float* cosine = reinterpret_cast<float*>(memory_.data()) + std::size_t{position} * 2 * dims_;
  float* sine = cosine + dims_;
  for (std::uint32_t pair = 0; pair < dims_ / 2; ++pair) {
    const double angle = position * frequencies_[pair];
    const auto c = static_cast<float>(std::cos(angle) * rope_.magnitude);
    const auto s = static_cast<float>(std::sin(angle) * rope_.magnitude);
    const bool neighbours = rope_.layout == RopeLayout::interleaved;
    const std::uint32_t first = neighbours ? 2 * pair : pair;
    const std::uint32_t second = neighbours ? 2 * pair + 1 : pair + dims_ / 2;
    cosine[first] = cosine[second] = c;
    sine[first] = -s;
    sine[second] = s;
  }
}

Rotation RopeTable::rotation(std::uint32_t position) const {
  const float* cosine =
      reinterpret_cast<const float*>(memory_.data()) + std::size_t{position} * 2 * dims_;
  return {cosine, cosine + dims_, dims_, rope_.layout};
}

}  // namespace edgerunner::cpu
