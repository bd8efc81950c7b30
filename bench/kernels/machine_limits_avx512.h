#pragma once

namespace edgerunner::bench {

// Loops of `count` rounds over 16 independent accumulators; the return value keeps them alive.
int int8_rounds(long count);
int bf16_rounds(long count);
int f32_rounds(long count);
inline constexpr int kAccumulators = 16;

}  // namespace edgerunner::bench
