#pragma once

#include <cstdint>

namespace edgerunner::cpu {

// What is added to a signed weight to make its code unsigned.
inline constexpr int kCodeOffset = 128;

// 32 activations of a row in ActivationFormat::q8, with all that a product needs of them beside its
// weights, so that a kernel reads one stream. x[i] is about scale * q[i].
//
// scale = max|x| / 127 and q[i] = x[i] * (127 / max|x|) rounded to nearest, ties to even, so that
// |x[i] - scale * q[i]| <= scale * (1/2 + 2^-16). A block whose largest magnitude is below
// kSmallestMagnitude counts as zeros: its reciprocal would not be finite. A block that holds an
// infinity or a NaN has scale NaN, so that every output that it enters is NaN.
struct Q8Block {
  std::int8_t q[32];
  float scale;
  float scaled_sum;          // scale * sum of q: what a weight's constant term is multiplied with
  std::int32_t start;        // -kCodeOffset * sum of q: undoes the offset of signed weights' codes
  std::int16_t half_sum[2];  // sums of q[0, 16) and q[16, 32)
};
static_assert(sizeof(Q8Block) == 48);

inline constexpr int kQ8Length = 32;
inline constexpr float kSmallestMagnitude = 0x1p-118F;

}  // namespace edgerunner::cpu
