#include "edgerunner/generation.h"

#include <utility>

#include "runtime/generation_state.h"

namespace edgerunner {

const char* name(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::cancelled:
      return "cancelled";
    case FinishReason::context_full:
      return "context_full";
  }
  return "unknown";
}

void Generation::State::put(std::string piece) {
  {
    const std::lock_guard lock(mutex_);
    pieces_.push_back(std::move(piece));
  }
  changed_.notify_one();
}

void Generation::State::end(Summary result) noexcept {
  {
    const std::lock_guard lock(mutex_);
    summary_ = std::move(result);
    ended_ = true;
  }
  changed_.notify_one();
}

void Generation::State::end_with(const std::exception_ptr& failure) noexcept {
  {
    const std::lock_guard lock(mutex_);
    error_ = failure;
    ended_ = true;
  }
  changed_.notify_one();
}

bool Generation::State::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ended_ || !pieces_.empty(); });
  if (!pieces_.empty()) {
    current = std::move(pieces_.front());
    pieces_.pop_front();
    return true;
  }
  at_end = true;
  if (error_) std::rethrow_exception(error_);
  return false;
}

bool Generation::State::wait_for(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout, [this] { return ended_ || !pieces_.empty(); });
}

const Summary& Generation::State::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ended_; });
  pieces_.clear();
  at_end = true;
  if (error_) std::rethrow_exception(error_);
  return summary_;
}

Generation::Generation(std::shared_ptr<State> state) : state_(std::move(state)) {}
Generation::Generation(Generation&&) noexcept = default;

Generation& Generation::operator=(Generation&& other) noexcept {
  if (this != &other) {
    cancel();
    state_ = std::move(other.state_);
  }
  return *this;
}

Generation::~Generation() { cancel(); }

Generation::Iterator Generation::begin() {
  if (!state_->at_end) state_->next();
  return Iterator(state_.get());
}

bool Generation::wait_for(std::chrono::milliseconds timeout) const {
  return state_->wait_for(timeout);
}

void Generation::cancel() {
  if (state_) state_->cancel_requested = true;
}

const Summary& Generation::summary() { return state_->wait(); }

const std::string& Generation::Iterator::operator*() const { return state_->current; }

Generation::Iterator& Generation::Iterator::operator++() {
  state_->next();
  return *this;
}

bool Generation::Iterator::at_end() const { return state_->at_end; }

}  // namespace edgerunner
