#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "backend/profilable.h"
#include "base/cpu_features.h"

namespace edgerunner::cpu {

// Runs `work(thread)` on that many threads at once and gives the seconds from the common start to
// the last one's end; the smallest of `repetitions`.
double time_threads(int threads, int repetitions, const std::function<void(int)>& work);

// What `threads` threads of this machine read from memory (plain loops over 256 MiB, and over as
// much of `weights`), and compute in registers with the instructions that the kernels of a set use;
// no peaks for Isa::scalar. About a second and a quarter.
MachineLimits measure_limits(Isa isa, int threads,
                             const std::vector<std::span<const std::byte>>& weights);

}  // namespace edgerunner::cpu
