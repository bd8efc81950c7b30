#pragma once

#include <chrono>

#include "base/thread_pool.h"

namespace edgerunner::cpu {

// Seconds until one of a pool's threads sees what another has written: of the caller and each
// other, the longest. Cores that share a cache hand over in some 50 ns, others in several times
// that, and a virtual machine's may be moved at any time. 0 for a single thread, or where the
// others seldom have a core. Takes milliseconds, `most` on a busy machine: what of many threads
// doesn't fit into that is left out.
double measure_handover(ThreadPool& pool,
                        std::chrono::milliseconds most = std::chrono::milliseconds(100));

}  // namespace edgerunner::cpu
