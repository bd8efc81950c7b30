#include "backend/cuda/pass_timer.h"

#include <utility>

namespace edgerunner::cuda {

void PassTimer::record(OperationTimes* times, std::uint32_t most_laps) {
  times_ = times;
  if (times == nullptr) return;
  if (events_.size() < most_laps + 1) events_ = std::vector<Event>(most_laps + 1);
  laps_.reserve(most_laps);
}

void PassTimer::begin(cudaStream_t stream) {
  running_ = recording();
  if (!running_) return;
  laps_.clear();
  check(cudaEventRecord(events_[0], stream), "timing");
}

void PassTimer::lap(Operation operation, cudaStream_t stream) {
  if (!running_) return;
  laps_.push_back(operation);
  check(cudaEventRecord(events_[laps_.size()], stream), "timing");
}

double PassTimer::seconds(std::size_t lap) const {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, events_[lap], events_[lap + 1]), "timing");
  return milliseconds * 1e-3;
}

void PassTimer::finish() {
  if (!std::exchange(running_, false)) return;
  for (std::size_t i = 0; i < laps_.size(); ++i) times_->add(laps_[i], seconds(i));
  times_->begin();  // so that the caller's next lap begins here
}

void PassTimer::finish(const std::vector<std::pair<Operation, double>>& shares) {
  if (!std::exchange(running_, false)) return;
  double sum = 0;
  for (const auto& [operation, share] : shares) sum += share;
  const double whole = seconds(0);
  for (const auto& [operation, share] : shares) times_->add(operation, whole * share / sum);
  times_->begin();
}

}  // namespace edgerunner::cuda
