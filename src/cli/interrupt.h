#pragma once

#include <pthread.h>

#include <atomic>
#include <stop_token>
#include <thread>

namespace edgerunner::cli {

// Turns the first Ctrl-C (or SIGTERM) into a stop request; a second one ends the program at once.
// Must be made before any other thread, since threads inherit the blocked signals.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  std::stop_token token() const { return stop_.get_token(); }

 private:
  void watch();

  std::stop_source stop_;
  std::atomic<bool> done_ = false;
  std::thread watcher_;
};

}  // namespace edgerunner::cli
