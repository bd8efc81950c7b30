#pragma once

namespace edgerunner::cpu {

// Seconds until one of `threads` threads sees what another has written: of the first and each
// other, the longest. Cores that share a cache hand over in some 50 ns, others in several times
// that, and a virtual machine's may be moved at any time. 0 for a single thread. Takes
// milliseconds, 200 at most: of many threads what doesn't fit into that is left out.
double measure_handover(int threads);

}  // namespace edgerunner::cpu
