#include "backend/operation_times.h"

#include <numeric>

namespace edgerunner {

std::string_view name(Operation operation) {
  constexpr std::array<std::string_view, kOperations> kNames = {
      "embedding", "attention norm", "q, k, v", "rope and cache", "attention", "attention output",
      "ffn norm",  "gate and up",    "down",    "head",           "sampling",  "other"};
  return kNames[static_cast<std::size_t>(operation)];
}

void OperationTimes::begin() {
  ++passes_;
  last_ = std::chrono::steady_clock::now();
}

void OperationTimes::lap(Operation operation) {
  const auto now = std::chrono::steady_clock::now();
  add(operation, std::chrono::duration<double>(now - last_).count());
  last_ = now;
}

double OperationTimes::total() const {
  return std::accumulate(seconds_.begin(), seconds_.end(), 0.0);
}

}  // namespace edgerunner
