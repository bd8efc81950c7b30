#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "backend/cuda/device.h"
#include "backend/operation_times.h"

namespace edgerunner::cuda {

// Times the operations of forward passes on the device, by an event after each. Does nothing until
// record() is given a place for the times; laps count between begin() and finish() alone.
class PassTimer {
 public:
  // `most_laps`: of one pass.
  void record(OperationTimes* times, std::uint32_t most_laps);
  bool recording() const { return times_ != nullptr; }
  bool running() const { return running_; }

  void begin(cudaStream_t stream);
  // What was launched since begin() or the latest lap belongs to `operation`.
  void lap(Operation operation, cudaStream_t stream);
  // Adds the pass's times up; `stream` must have been waited for.
  void finish();
  // The same where a kernel with timers of its own has told how its time was spent: the time of the
  // one lap is shared out by `shares`, of any unit.
  void finish(const std::vector<std::pair<Operation, double>>& shares);

 private:
  double seconds(std::size_t lap) const;

  OperationTimes* times_ = nullptr;
  std::vector<Event> events_;  // the pass's begin, then one for each lap
  std::vector<Operation> laps_;
  bool running_ = false;
};

}  // namespace edgerunner::cuda
