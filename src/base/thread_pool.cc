#include "base/thread_pool.h"

#include <algorithm>

#include "base/cpu_features.h"

namespace edgerunner {
namespace {

// A pause is 40 to 140 cycles: about 30 microseconds, which outlast the phases of a forward pass
// that threads wait for, and less than it costs to put a thread to sleep and wake it several times.
constexpr int kSpins = 1000;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads)
    : size_(std::max(threads, 1)), spins_(size_ <= available_cores() ? kSpins : 0) {
  threads_.reserve(static_cast<std::size_t>(size_) - 1);
  for (int i = 1; i < size_; ++i) threads_.emplace_back([this, i] { serve(i); });
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_relaxed);
  regions_.fetch_add(1, std::memory_order_release);
  regions_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::start(Entry entry, void* context) {
  Worker self(*this, 0);
  if (size_ == 1) {
    entry(context, self);
    return;
  }
  entry_ = entry;
  context_ = context;
  regions_.fetch_add(1, std::memory_order_release);
  regions_.notify_all();
  entry(context, self);
  barrier();
}

void ThreadPool::serve(int index) {
  Worker self(*this, index);
  for (std::uint32_t seen = 0;; ++seen) {
    wait_while(regions_, seen);
    if (stopping_.load(std::memory_order_relaxed)) return;
    entry_(context_, self);
    barrier();
  }
}

void ThreadPool::wait_while(const std::atomic<std::uint32_t>& value, std::uint32_t old) const {
  for (int i = 0; i < spins_; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause();
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

void ThreadPool::barrier() {
  if (size_ == 1) return;
  const std::uint32_t passed = barriers_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(size_)) {
    arrived_.store(0, std::memory_order_relaxed);
    next_.store(0, std::memory_order_relaxed);
    barriers_.fetch_add(1, std::memory_order_release);
    barriers_.notify_all();
  } else {
    wait_while(barriers_, passed);
  }
}

}  // namespace edgerunner
