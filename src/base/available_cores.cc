#include <algorithm>
#include <cmath>
#include <thread>

#include "base/cgroup.h"
#include "base/cpu_features.h"

#if defined(__linux__)
#include <sched.h>
#endif

namespace edgerunner {
namespace {

int cores_of_affinity_mask() {
#if defined(__linux__)
  cpu_set_t mask;
  CPU_ZERO(&mask);
  // Fails on machines with more processors than the mask holds (1024); then all count.
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) return CPU_COUNT(&mask);
#endif
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

int available_cores() {
  double cores = cores_of_affinity_mask();
  if (const auto quota = cgroup_limits().cpus) cores = std::min(cores, std::ceil(*quota));
  return std::max(1, static_cast<int>(cores));
}

}  // namespace edgerunner
