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

// What has been taken of a worker's part of a loop, from the front and from the back. Whatever says
// another loop is of an earlier one, and nothing has been taken yet, or of a later one, and all
// has. Numbers of loops are cut to their low bits: they are compared within a region only, which
// has fewer.
struct Progress {
  static constexpr int kBits = 21;
  static constexpr std::uint32_t kMost = (1U << kBits) - 1;
  static constexpr std::uint32_t kLoops = 1U << (64 - 2 * kBits);

  std::uint32_t loop;
  std::uint32_t front;
  std::uint32_t back;

  static Progress unpack(std::uint64_t packed) {
    return {static_cast<std::uint32_t>(packed >> (2 * kBits)),
            static_cast<std::uint32_t>(packed >> kBits) & kMost,
            static_cast<std::uint32_t>(packed) & kMost};
  }
  std::uint64_t pack() const {
    return std::uint64_t{loop % kLoops} << (2 * kBits) | std::uint64_t{front} << kBits | back;
  }
  // Of `loop`, a part of `size` indices; false where there is nothing left of it.
  bool belongs_to(std::uint32_t of, std::uint32_t size) {
    const std::uint32_t later = (of - loop) % kLoops;
    if (later >= kLoops / 2) return false;
    if (later > 0) *this = {of % kLoops, 0, 0};
    return front + back < size;
  }
};

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
      gate_(pack(0) | kClosed),
      taken_(static_cast<std::size_t>(size_)) {
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
  // As of the loop before, so that no number is older than the region.
  for (Taken& taken : taken_) {
    taken.packed.store(Progress{first_loop_ - 1, 0, 0}.pack(), std::memory_order_relaxed);
  }
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

ThreadPool::Part ThreadPool::part_of(int worker, std::uint32_t count) const {
  const auto threads = static_cast<std::uint64_t>(size_);
  const auto border = [&](int i) {
    return static_cast<std::uint32_t>((static_cast<std::uint64_t>(i) * count + threads - 1) /
                                      threads);
  };
  return {border(worker), border(worker + 1)};
}

ThreadPool::Part ThreadPool::take(std::uint32_t loop, std::uint32_t count, int worker,
                                  bool by_ranges) {
  const Part part = part_of(worker, count);
  const std::uint32_t size = part.end - part.begin;
  std::atomic<std::uint64_t>& packed = taken_[static_cast<std::size_t>(worker)].packed;
  std::uint64_t before = packed.load(std::memory_order_acquire);
  for (;;) {
    Progress progress = Progress::unpack(before);
    if (!progress.belongs_to(loop, size)) return {0, 0};
    const std::uint32_t left = size - progress.front - progress.back;
    const std::uint32_t begin = part.begin + progress.front;
    const std::uint32_t length = by_ranges ? left - left / 4 : 1;
    progress.front += length;
    if (packed.compare_exchange_weak(before, progress.pack(), std::memory_order_acq_rel,
                                     std::memory_order_acquire)) {
      return {begin, begin + length};
    }
  }
}

ThreadPool::Part ThreadPool::take_last(std::uint32_t loop, std::uint32_t count, int worker) {
  const Part part = part_of(worker, count);
  std::atomic<std::uint64_t>& packed = taken_[static_cast<std::size_t>(worker)].packed;
  std::uint64_t before = packed.load(std::memory_order_acquire);
  for (;;) {
    Progress progress = Progress::unpack(before);
    if (!progress.belongs_to(loop, part.end - part.begin)) return {0, 0};
    const std::uint32_t end = part.end - progress.back;
    ++progress.back;
    if (packed.compare_exchange_weak(before, progress.pack(), std::memory_order_acq_rel,
                                     std::memory_order_acquire)) {
      return {end - 1, end};
    }
  }
}

bool ThreadPool::complete(std::uint32_t indices, std::uint32_t count) {
  return done_.fetch_add(indices, std::memory_order_acq_rel) + indices == count;
}

void ThreadPool::open_next(std::uint32_t loop) {
  done_.store(0, std::memory_order_relaxed);
  finished_.store(loop + 1, std::memory_order_release);
  finished_.notify_all();
}

bool ThreadPool::is_finished(std::uint32_t loop) const {
  const std::uint32_t finished = finished_.load(std::memory_order_acquire);
  return static_cast<std::int32_t>(finished - loop) > 0;
}

void ThreadPool::wait_for(std::uint32_t loop) const {
  for (;;) {
    const std::uint32_t finished = finished_.load(std::memory_order_acquire);
    if (static_cast<std::int32_t>(finished - loop) > 0) return;
    wait_while(finished_, finished);
  }
}

}  // namespace edgerunner
