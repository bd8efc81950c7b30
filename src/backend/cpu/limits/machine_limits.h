#pragma once

#include <functional>

#include "backend/profilable.h"
#include "base/cpu_features.h"

namespace edgerunner::cpu {

// Runs `work(thread)` on that many threads at once and gives the seconds from the common start to
// the last one's end; the smallest of `repetitions`.
double time_threads(int threads, int repetitions, const std::function<void(int)>& work);

// What `threads` threads of this machine read from memory (plain loops over 256 MiB) and compute in
// registers with the instructions that the kernels of a set use; no peaks for Isa::scalar. About a
// second.
MachineLimits measure_limits(Isa isa, int threads);

}  // namespace edgerunner::cpu
