#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <semaphore>

#include "backend/executor.h"

namespace edgerunner::test {

// Holds a scripted model before each forward pass until the test lets it go on, so that what a test
// looks at lasts until it has looked. Opens for good when it is destroyed: to be declared after
// what owns the model.
class StepGate {
 public:
  StepGate() = default;
  ~StepGate() { open(); }
  StepGate(const StepGate&) = delete;
  StepGate& operator=(const StepGate&) = delete;

  // To be called before each forward pass.
  std::function<void(const Batch&)> hook() const {
    return [state = state_](const Batch&) {
      if (!state->open) state->allowed.acquire();
    };
  }
  void allow(std::ptrdiff_t passes) { state_->allowed.release(passes); }
  void open() {
    state_->open = true;
    state_->allowed.release();  // the pass that waits, if one does
  }

 private:
  struct State {
    std::counting_semaphore<> allowed{0};
    std::atomic<bool> open = false;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace edgerunner::test
