#include "cli/interrupt.h"

#include <csignal>

namespace edgerunner::cli {
namespace {

sigset_t watched_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

}  // namespace

Interrupt::Interrupt() {
  const sigset_t signals = watched_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  watcher_ = std::thread([this] { watch(); });
}

Interrupt::~Interrupt() {
  done_ = true;
  pthread_kill(watcher_.native_handle(), SIGINT);  // wakes sigwait
  watcher_.join();
}

void Interrupt::watch() {
  const sigset_t signals = watched_signals();
  bool requested = false;
  while (true) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0 || done_) return;
    if (requested) {
      std::signal(signal, SIG_DFL);
      pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
      std::raise(signal);
    }
    requested = true;
    stop_.request_stop();
  }
}

}  // namespace edgerunner::cli
