#include "base/thread_pool.h"

#include <algorithm>

#include "base/cpu_features.h"

namespace edgerunner {
namespace {

// A pause is 40 to 140 cycles: about 30 microseconds, which outlast the loops of a forward pass
// that threads wait for, and less than it costs to put a thread to sleep and wake it several times.
constexpr int kSpins = 1000;

constexpr std::uint64_t kClosed = std::uint64_t{1} << 31;
constexpr std::uint64_t kInside = kClosed - 1;

constexpr std::uint64_t pack(std::uint32_t number) { return std::uint64_t{number} << 32; }
constexpr std::uint32_t number_of(std::uint64_t packed) {
  return static_cast<std::uint32_t>(packed >> 32);
}

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads)
    : size_(std::max(threads, 1)),
      spins_(size_ <= available_cores() ? kSpins : 0),
      gate_(pack(0) | kClosed) {
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
  if (size_ == 1) {
    Worker self(*this, 0);
    entry(context, self);
    return;
  }
  entry_ = entry;
  context_ = context;
  first_loop_ = finished_.load(std::memory_order_relaxed);
  const std::uint32_t region = regions_.load(std::memory_order_relaxed) + 1;
  gate_.store(pack(region), std::memory_order_release);
  regions_.store(region, std::memory_order_release);
  regions_.notify_all();

  Worker self(*this, 0);
  entry(context, self);

  // Whoever is still inside has nothing left to do, but may be on its way through.
  std::uint64_t gate = gate_.fetch_or(kClosed, std::memory_order_acq_rel) | kClosed;
  while ((gate & kInside) != 0) {
    wait_while(gate_, gate);
    gate = gate_.load(std::memory_order_acquire);
  }
}

void ThreadPool::serve(int index) {
  for (std::uint32_t seen = 0;;) {
    wait_while(regions_, seen);
    if (stopping_.load(std::memory_order_relaxed)) return;
    seen = join(index, seen);
  }
}

std::uint32_t ThreadPool::join(int index, std::uint32_t seen) {
  std::uint64_t gate = gate_.load(std::memory_order_acquire);
  do {
    if ((gate & kClosed) != 0 || number_of(gate) == seen) return number_of(gate);
  } while (!gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acq_rel,
                                        std::memory_order_acquire));
  Worker self(*this, index);
  entry_(context_, self);
  const std::uint64_t left = gate_.fetch_sub(1, std::memory_order_acq_rel) - 1;
  if ((left & kClosed) != 0 && (left & kInside) == 0) gate_.notify_all();
  return number_of(gate);
}

template <class Loaded>
void ThreadPool::wait_while(const std::atomic<Loaded>& value, Loaded old) const {
  for (int i = 0; i < spins_; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause();
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

// Takes the next index of a loop; false where there is none left.
bool ThreadPool::claim(std::uint32_t loop, std::uint32_t count, std::uint32_t& index) {
  std::uint64_t next = next_.load(std::memory_order_acquire);
  for (;;) {
    index = static_cast<std::uint32_t>(next);
    if (number_of(next) != loop || index >= count) return false;
    if (next_.compare_exchange_weak(next, next + 1, std::memory_order_acq_rel,
                                    std::memory_order_acquire)) {
      return true;
    }
  }
}

bool ThreadPool::complete(std::uint32_t count) {
  return done_.fetch_add(1, std::memory_order_acq_rel) + 1 == count;
}

void ThreadPool::open_next(std::uint32_t loop) {
  done_.store(0, std::memory_order_relaxed);
  next_.store(pack(loop + 1), std::memory_order_release);
  finished_.store(loop + 1, std::memory_order_release);
  finished_.notify_all();
}

void ThreadPool::wait_for(std::uint32_t loop) const {
  for (;;) {
    const std::uint32_t finished = finished_.load(std::memory_order_acquire);
    if (static_cast<std::int32_t>(finished - loop) > 0) return;
    wait_while(finished_, finished);
  }
}

}  // namespace edgerunner
