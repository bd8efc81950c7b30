#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

namespace edgerunner::cli {

// Ctrl-C stops the answer that is being written, and not the program; at the prompt it does
// nothing. Must be made before any other thread, since threads inherit the blocked signal.
class AnswerInterrupt {
 public:
  AnswerInterrupt();
  ~AnswerInterrupt();
  AnswerInterrupt(const AnswerInterrupt&) = delete;
  AnswerInterrupt& operator=(const AnswerInterrupt&) = delete;

  // An answer begins: the next Ctrl-C stops this token. Until then none is stopped.
  std::stop_token begin();
  void end();

 private:
  void watch();

  std::mutex mutex_;
  std::optional<std::stop_source> answer_;
  std::atomic<bool> done_ = false;
  std::thread watcher_;
};

}  // namespace edgerunner::cli
