#include "runtime/arg_max.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace edgerunner {
namespace {
// Independent lanes, so that the compiler may use a vector register for each operation.
constexpr std::size_t kLanes = 16;
}  // namespace

float max_value(std::span<const float> logits) {
  std::array<float, kLanes> lanes;
  lanes.fill(logits[0]);
  std::size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes) {
    for (std::size_t j = 0; j < kLanes; ++j) {
      const float value = logits[i + j];
      lanes[j] = value > lanes[j] ? value : lanes[j];
    }
  }
  float best = *std::max_element(lanes.begin(), lanes.end());
  for (; i < logits.size(); ++i) best = std::max(best, logits[i]);
  return best;
}

bool all_finite(std::span<const float> logits) {
  constexpr std::uint32_t kExponent = 0x7F800000U;  // all ones: infinity or NaN
  std::uint32_t bad = 0;
  for (const float value : logits) {
    bad |=
        static_cast<std::uint32_t>((std::bit_cast<std::uint32_t>(value) & kExponent) == kExponent);
  }
  return bad == 0;
}

ArgMax arg_max(std::span<const float> logits) {
  if (!all_finite(logits)) return {.token = 0, .value = 0, .finite = false};
  const float best = max_value(logits);
  const auto found = std::find(logits.begin(), logits.end(), best);
  return {.token = static_cast<TokenId>(found - logits.begin()), .value = best, .finite = true};
}

}  // namespace edgerunner
