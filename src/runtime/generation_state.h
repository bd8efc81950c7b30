#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <string>

#include "edgerunner/generation.h"
#include "runtime/generation_sink.h"

namespace edgerunner {

// What a generation's two ends share: the scheduler's thread puts pieces in, a consumer takes them
// out. A consumer that waits sleeps, so that it leaves its core to the forward pass.
struct Generation::State : GenerationSink {
  // The scheduler's end.
  void put(std::string piece) override;
  void end(Summary result) noexcept override;
  void end_with(const std::exception_ptr& failure) noexcept override;

  // The consumer's end. `next` waits for a piece and puts it into `current`; false at the end.
  // Both throw the generation's error once its pieces have been taken.
  bool next();
  const Summary& wait();
  bool wait_for(std::chrono::milliseconds timeout);  // whether `next` would not wait

  std::string current;  // the consumer's
  bool at_end = false;  // the consumer's

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> pieces_;
  bool ended_ = false;
  std::exception_ptr error_;
  Summary summary_;
};

}  // namespace edgerunner
