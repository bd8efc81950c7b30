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
// Longer than that takes only a thread that shares its core with the other; until they are parted.
constexpr std::chrono::microseconds kPlausible{1};
constexpr std::chrono::milliseconds kMostTime{100};  // of one, and nearly of all

// A number on a cache line of its own.
struct alignas(64) Line {
  std::atomic<int> value{0};

  // Spins, but lets others run where there are fewer cores than threads.
  int wait_past(int old) const {
    constexpr int kSpins = 10'000;
    for (int i = 0;; ++i) {
      const int now = value.load(std::memory_order_acquire);
      if (now != old) return now;
      if (i >= kSpins) std::this_thread::yield();
    }
  }
};

// The least of what fits into the time: a thread that loses its core meanwhile doesn't count.
double handover_of_two() {
  Line there;
  Line back;
  std::thread other([&] {
    for (int seen = 0; (seen = there.wait_past(seen)) >= 0;) {
      back.value.store(seen, std::memory_order_release);
    }
  });
  const Clock::time_point start = Clock::now();
  Clock::duration least = Clock::duration::max();
  int sent = 0;
  Clock::time_point begin;
  do {
    begin = Clock::now();
    for (int i = 0; i < kRounds; ++i) {
      there.value.store(sent + 1, std::memory_order_release);
      sent = back.wait_past(sent);
    }
    least = std::min(least, Clock::now() - begin);
  } while (begin - start < (least < 2 * kRounds * kPlausible ? kTime : kMostTime));
  there.value.store(-1, std::memory_order_release);
  other.join();
  return std::chrono::duration<double>(least).count() / (2 * kRounds);
}

}  // namespace

double measure_handover(int threads) {
  const Clock::time_point end = Clock::now() + kMostTime;
  double longest = 0;
  for (int i = 1; i < threads && Clock::now() < end; ++i) {
    longest = std::max(longest, handover_of_two());
  }
  return longest;
}

}  // namespace edgerunner::cpu
