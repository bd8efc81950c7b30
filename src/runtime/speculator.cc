#include "runtime/speculator.h"

#include <algorithm>
#include <chrono>

namespace edgerunner {

void Speculator::draft(std::span<DraftRequest> requests, std::uint32_t decoding) {
  drafting_ = DraftCost::Duration(0);
  const auto lookups = std::partition(requests.begin(), requests.end(),
                                      [this](const auto& request) { return by_lookup(request); });
  const std::span<DraftRequest> looked_up(requests.begin(), lookups);
  // What asks for nothing and has no drafter is guessed by nothing.
  const std::span<DraftRequest> drafted(lookups, drafter_ ? requests.end() : lookups);
  const auto guessing = static_cast<std::uint32_t>(looked_up.size() + drafted.size());
  if (guessing == 0) return;
  const auto begin = std::chrono::steady_clock::now();
  const std::uint32_t share = std::min(options_.most, options_.most_rows / guessing);
  for (DraftRequest& request : requests.first(guessing)) {
    request.most = std::min(request.most, share);
    if (!options_.adaptive) continue;
    request.most =
        cost_.knows(decoding) ? lengths_[request.sequence].next(cost_, guessing, request.most) : 0;
  }
  if (!looked_up.empty()) lookup_.draft(looked_up);
  if (!drafted.empty()) drafter_->draft(drafted);
  drafting_ = std::chrono::steady_clock::now() - begin;
}

}  // namespace edgerunner
