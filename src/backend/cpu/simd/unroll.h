#pragma once

// Before a loop of constant length over an array of vectors: unrolled, so that they stay in
// registers.
#if defined(__clang__)
#define EDGERUNNER_UNROLL _Pragma("clang loop unroll(full)")
#else
#define EDGERUNNER_UNROLL _Pragma("GCC unroll 16")
#endif
