#pragma once

#include <cstddef>
#include <functional>

namespace edgerunner::bench {

// Runs `work(thread)` on that many threads at once and gives the seconds from the common start to
// the last one's end; the smallest of `repetitions`.
double time_threads(int threads, int repetitions, const std::function<void(int)>& work);

// Bytes a second that plain loops read from memory, over 256 MiB.
double read_bandwidth(int threads);

// Operations a second of independent 8-bit dot products, bfloat16 dot products and f32 fused
// multiply-adds (two operations a product) in registers; zero where the machine has no AVX-512.
struct Peaks {
  double int8 = 0;
  double bf16 = 0;
  double f32 = 0;
};
Peaks arithmetic_peaks(int threads);

}  // namespace edgerunner::bench
