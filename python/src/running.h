#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "edgerunner/chat.h"
#include "edgerunner/generation.h"
#include "signals.h"

namespace edgerunner::python {

inline std::optional<std::string> next_piece(Generation& generation) {
  const Generation::Iterator piece = generation.begin();
  if (piece == generation.end()) return std::nullopt;
  return *piece;
}

inline std::optional<std::pair<std::string, bool>> next_piece(ChatReply& reply) {
  auto piece = reply.next();
  if (!piece) return std::nullopt;
  return std::pair(std::move(piece->text), piece->reasoning);
}

// A Generation or a ChatReply that several Python threads may read: each piece goes to one of them.
template <typename Source>
class Running {
 public:
  explicit Running(Source source) : source_(std::move(source)) {}

  auto next() {
    const std::unique_lock lock = lock_without_gil();
    wait();
    return next_piece(source_);
  }

  void cancel() { source_.cancel(); }

  // Drops what has not been read.
  Summary summary() {
    const std::unique_lock lock = lock_without_gil();
    do {
      wait();
    } while (next_piece(source_));
    return source_.summary();
  }

  const Source& source() const { return source_; }

 private:
  std::unique_lock<std::mutex> lock_without_gil() {
    const nanobind::gil_scoped_release no_gil;
    return std::unique_lock(mutex_);
  }

  void wait() {
    wait_with_signals([this](auto timeout) { return source_.wait_for(timeout); },
                      [this] { source_.cancel(); });
  }

  std::mutex mutex_;
  Source source_;
};

}  // namespace edgerunner::python
