#include "runtime/speculator.h"

#include <algorithm>
#include <chrono>

namespace edgerunner {

void Speculator::draft(std::span<DraftRequest> requests) {
  drafting_ = DraftCost::Duration(0);
  if (requests.empty()) return;
  const auto begin = std::chrono::steady_clock::now();
  const auto sequences = static_cast<std::uint32_t>(requests.size());
  const std::uint32_t share = std::min(options_.most, options_.most_rows / sequences);
  for (DraftRequest& request : requests) {
    request.most = std::min(request.most, share);
    if (!options_.adaptive) continue;
    request.most = cost_.knows(sequences)
                       ? lengths_[request.sequence].next(cost_, sequences, request.most)
                       : 0;
  }
  drafter_->draft(requests);
  drafting_ = std::chrono::steady_clock::now() - begin;
}

}  // namespace edgerunner
