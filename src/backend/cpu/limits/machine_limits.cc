#include "backend/cpu/limits/machine_limits.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <span>
#include <thread>
#include <vector>

#include "backend/cpu/kernels/peaks.h"

namespace edgerunner::cpu {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<std::uint64_t> sink;

// Two streams at once, for the prefetchers of a core follow several.
std::uint64_t sum_of(std::span<const std::uint64_t> data) {
  const std::size_t half = data.size() / 16 * 8;
  const std::uint64_t* const second = data.data() + half;
  std::uint64_t sums[8] = {};
  for (std::size_t i = 0; i < half; i += 8) {
    for (std::size_t j = 0; j < 8; ++j) sums[j] += data[i + j] + second[i + j];
  }
  std::uint64_t total = 0;
  for (const std::uint64_t sum : sums) total += sum;
  return total;
}

PeakLoops peak_loops(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::amx:  // whose kernels of 8-bit and of f32 products are those of AVX-512
      return {.int8 = kAvx512Peaks.int8, .half = kAmxPeak, .f32 = kAvx512Peaks.f32};
    case Isa::avx512:
      return kAvx512Peaks;
    case Isa::avx2:
      return kAvx2Peaks;
#elif defined(__aarch64__)
    case Isa::neon:
      return kNeonPeaks;
    case Isa::neon_i8mm:
      return kNeonI8mmPeaks;
#endif
    default:
      return {};
  }
}

// The least of at least two measurements, and of as many as fit into a quarter of a second: enough
// for the clock to rise and to pass by what disturbs.
template <typename Measure>
double least(const Measure& measure) {
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(250);
  double seconds = measure();
  do seconds = std::min(seconds, measure());
  while (Clock::now() < end);
  return seconds;
}

// Operations a second.
double peak(int threads, const PeakLoop& loop) {
  if (loop.run == nullptr) return 0;
  const auto time = [&](long rounds) {
    return time_threads(threads, 1,
                        [&](int) { sink += static_cast<std::uint64_t>(loop.run(rounds)); });
  };
  // As many rounds as take some milliseconds, beside which starting together is nothing.
  long rounds = 10'000;
  while (time(rounds) < 4e-3) rounds *= 4;
  return loop.operations * static_cast<double>(rounds) * threads /
         least([&] { return time(rounds); });
}

constexpr std::size_t kReadBytes = std::size_t{256} << 20;
constexpr std::size_t kLeastWeights = std::size_t{64} << 20;

using Words = std::span<const std::uint64_t>;

// Bytes a second, where each thread reads its part of each of `all`.
double read_bandwidth(int threads, const std::vector<Words>& all) {
  const auto count = static_cast<std::size_t>(threads);
  std::size_t words = 0;
  for (const Words data : all) words += data.size() / count * count;
  if (words == 0) return 0;
  const double seconds = least([&] {
    return time_threads(threads, 1, [&](int t) {
      for (const Words data : all) {
        const std::size_t part = data.size() / count;
        sink += sum_of(data.subspan(part * static_cast<std::size_t>(t), part));
      }
    });
  });
  return static_cast<double>(words * sizeof(std::uint64_t)) / seconds;
}

double memory_bandwidth(int threads) {
  const std::vector<std::uint64_t> data(kReadBytes / sizeof(std::uint64_t), 1);
  return read_bandwidth(threads, {data});
}

double weights_bandwidth(int threads, const std::vector<std::span<const std::byte>>& weights) {
  std::vector<Words> all;
  std::size_t left = kReadBytes;
  for (const std::span<const std::byte> data : weights) {
    // From the first whole word on: what is a part of a tensor may begin anywhere.
    const std::size_t skipped =
        -reinterpret_cast<std::uintptr_t>(data.data()) % sizeof(std::uint64_t);
    const std::size_t size = std::min(data.size(), left);
    left -= size;
    if (size <= skipped) continue;
    all.emplace_back(reinterpret_cast<const std::uint64_t*>(data.data() + skipped),
                     (size - skipped) / sizeof(std::uint64_t));
  }
  // Less stands in the caches.
  return kReadBytes - left < kLeastWeights ? 0 : read_bandwidth(threads, all);
}

}  // namespace

double time_threads(int threads, int repetitions, const std::function<void(int)>& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    std::atomic<int> ready = 0;
    std::vector<std::thread> pool;
    pool.reserve(static_cast<std::size_t>(threads));
    std::vector<Clock::time_point> begins(static_cast<std::size_t>(threads));
    std::vector<Clock::time_point> ends(begins.size());
    for (int t = 0; t < threads; ++t) {
      pool.emplace_back([&, t] {
        ++ready;
        while (ready < threads) std::this_thread::yield();
        begins[static_cast<std::size_t>(t)] = Clock::now();
        work(t);
        ends[static_cast<std::size_t>(t)] = Clock::now();
      });
    }
    for (std::thread& thread : pool) thread.join();
    const std::chrono::duration<double> seconds = *std::max_element(ends.begin(), ends.end()) -
                                                  *std::min_element(begins.begin(), begins.end());
    best = std::min(best, seconds.count());
  }
  return best;
}

MachineLimits measure_limits(Isa isa, int threads,
                             const std::vector<std::span<const std::byte>>& weights) {
  const PeakLoops loops = peak_loops(isa);
  return {.read_bytes = memory_bandwidth(threads),
          .operations = {peak(threads, loops.int8), peak(threads, loops.half),
                         peak(threads, loops.f32)},
          .weights_read_bytes = weights_bandwidth(threads, weights)};
}

}  // namespace edgerunner::cpu
