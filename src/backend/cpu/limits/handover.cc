#include "backend/cpu/limits/handover.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace edgerunner::cpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 100;  // measured at once, so that reading the clock is nothing
constexpr std::chrono::milliseconds kTime{4};
// More takes only a thread that was woken on the other's core: they are parted soon.
constexpr std::chrono::microseconds kPlausible{1};

constexpr int kOver = -1;

// A number on a cache line of its own.
struct alignas(64) Line {
  std::atomic<int> value{0};

  void write(int now) { value.store(now, std::memory_order_release); }
  // What follows `old`, or `old` where nothing has by `end`.
  int wait_past(int old, Clock::time_point end) const {
    constexpr int kSpins = 10'000;
    for (;;) {
      for (int i = 0; i < kSpins; ++i) {
        const int now = value.load(std::memory_order_acquire);
        if (now != old) return now;
      }
      if (Clock::now() > end) return old;
      std::this_thread::yield();  // to the other, where both have the same core
    }
  }
};

// The least of what fits into the time, since a thread that loses its core meanwhile doesn't count;
// 0 where the other thread doesn't come or seldom has a core.
double ask(Line& there, Line& back, Clock::time_point end) {
  Clock::time_point last = end;
  Clock::duration least = Clock::duration::max();
  for (int sent = 0;;) {
    const Clock::time_point begin = Clock::now();
    if (begin > last) break;
    for (int i = 0; i < kRounds; ++i) {
      there.write(sent + 1);
      const int seen = back.wait_past(sent, end);
      if (seen == sent) return 0;
      sent = seen;
    }
    least = std::min(least, Clock::now() - begin);
    if (least < 2 * kRounds * kPlausible) last = std::min(last, begin + kTime);
  }
  if (least == Clock::duration::max()) return 0;
  return std::chrono::duration<double>(least).count() / (2 * kRounds);
}

void answer(const Line& there, Line& back, Clock::time_point end) {
  for (int seen = 0;;) {
    const int next = there.wait_past(seen, end);
    if (next == seen || next == kOver) return;
    back.write(seen = next);
  }
}

}  // namespace

double measure_handover(ThreadPool& pool, std::chrono::milliseconds most) {
  const Clock::time_point end = Clock::now() + most;
  double longest = 0;
  for (int other = 1; other < pool.size() && Clock::now() < end; ++other) {
    Line there;
    Line back;
    pool.run([&](const ThreadPool::Worker& worker) {
      if (worker.index() == other) answer(there, back, end);
      if (worker.index() != 0) return;
      longest = std::max(longest, ask(there, back, end));
      there.write(kOver);
    });
  }
  return longest;
}

}  // namespace edgerunner::cpu
