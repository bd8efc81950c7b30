#include "cli/answer_interrupt.h"

#include <pthread.h>

#include <csignal>

namespace edgerunner::cli {
namespace {

sigset_t watched_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

AnswerInterrupt::AnswerInterrupt() {
  const sigset_t signals = watched_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  watcher_ = std::thread([this] { watch(); });
}

AnswerInterrupt::~AnswerInterrupt() {
  done_ = true;
  pthread_kill(watcher_.native_handle(), SIGINT);  // wakes sigwait
  watcher_.join();
}

std::stop_token AnswerInterrupt::begin() {
  const std::lock_guard lock(mutex_);
  answer_.emplace();
  return answer_->get_token();
}

void AnswerInterrupt::end() {
  const std::lock_guard lock(mutex_);
  answer_.reset();
}

void AnswerInterrupt::watch() {
  const sigset_t signals = watched_signals();
  while (true) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0 || done_) return;
    const std::lock_guard lock(mutex_);
    if (answer_) answer_->request_stop();
  }
}

}  // namespace edgerunner::cli
