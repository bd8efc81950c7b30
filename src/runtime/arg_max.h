#pragma once

#include <span>

#include "edgerunner/types.h"

namespace edgerunner {

struct ArgMax {
  TokenId token = 0;  // the lowest index where several are equal
  float value = 0;
  bool finite = true;  // whether all values were; if not, the others mean nothing
};

// The largest of `logits`, which must not be empty.
ArgMax arg_max(std::span<const float> logits);

// The largest value; infinities are allowed, NaN is not.
float max_value(std::span<const float> logits);

// Whether every value is finite.
bool all_finite(std::span<const float> logits);

}  // namespace edgerunner
