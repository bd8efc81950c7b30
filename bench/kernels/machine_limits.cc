#include "machine_limits.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

#include "base/cpu_features.h"
#include "machine_limits_avx512.h"

namespace edgerunner::bench {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<std::uint64_t> sink;

std::uint64_t sum_of(const std::uint64_t* data, std::size_t count) {
  std::uint64_t sums[8] = {};
  for (std::size_t i = 0; i < count; i += 8) {
    for (std::size_t j = 0; j < 8; ++j) sums[j] += data[i + j];
  }
  std::uint64_t total = 0;
  for (const std::uint64_t sum : sums) total += sum;
  return total;
}

#if defined(__x86_64__)
double peak(int threads, double operations, int (*rounds)(long)) {
  constexpr long kRounds = 4'000'000;
  const double seconds =
      time_threads(threads, 3, [&](int) { sink += static_cast<std::uint64_t>(rounds(kRounds)); });
  return operations * kAccumulators * kRounds * threads / seconds;
}
#endif

}  // namespace

double time_threads(int threads, int repetitions, const std::function<void(int)>& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    std::atomic<int> ready = 0;
    std::vector<std::thread> pool;
    std::vector<Clock::time_point> begins(threads);
    std::vector<Clock::time_point> ends(threads);
    for (int t = 0; t < threads; ++t) {
      pool.emplace_back([&, t] {
        ++ready;
        while (ready < threads) std::this_thread::yield();
        begins[t] = Clock::now();
        work(t);
        ends[t] = Clock::now();
      });
    }
    for (std::thread& thread : pool) thread.join();
    const std::chrono::duration<double> seconds = *std::max_element(ends.begin(), ends.end()) -
                                                  *std::min_element(begins.begin(), begins.end());
    best = std::min(best, seconds.count());
  }
  return best;
}

double read_bandwidth(int threads) {
  constexpr std::size_t kBytes = std::size_t{256} << 20;
  const std::vector<std::uint64_t> data(kBytes / sizeof(std::uint64_t), 1);
  const std::size_t part = data.size() / threads / 8 * 8;
  const double seconds =
      time_threads(threads, 5, [&](int t) { sink += sum_of(data.data() + part * t, part); });
  return static_cast<double>(part * threads * sizeof(std::uint64_t)) / seconds;
}

Peaks arithmetic_peaks(int threads) {
#if defined(__x86_64__)
  const CpuFeatures& features = cpu_features();
  if (features.avx512_vnni && features.avx512_bf16) {
    return {.int8 = peak(threads, 128, int8_rounds),
            .bf16 = peak(threads, 64, bf16_rounds),
            .f32 = peak(threads, 32, f32_rounds)};
  }
#endif
  static_cast<void>(threads);
  return {};
}

}  // namespace edgerunner::bench
