#pragma once

#include "backend/cpu/simd/unroll.h"

// Sums over `Simd`, which the including translation unit brings.
namespace edgerunner::cpu {
namespace {

// Sixteen sums side by side, whatever the lanes of a vector: the same numbers meet in the same
// order on every instruction set.
struct WideSum {
  using Vector = typename Simd::Vector;
  static constexpr int kLanes = 16;
  static constexpr int kParts = kLanes / Simd::kLanes;

  Vector part[kParts];

  static WideSum zero() {
    WideSum sum;
    EDGERUNNER_UNROLL
    for (int i = 0; i < kParts; ++i) sum.part[i] = Simd::broadcast(0.0F);
    return sum;
  }

  static WideSum load(const float* from) {
    WideSum sum;
    EDGERUNNER_UNROLL
    for (int i = 0; i < kParts; ++i) sum.part[i] = Simd::load(from + i * Simd::kLanes);
    return sum;
  }

  void store(float* to) const {
    EDGERUNNER_UNROLL
    for (int i = 0; i < kParts; ++i) Simd::store(to + i * Simd::kLanes, part[i]);
  }

  void add(const WideSum& other) {
    EDGERUNNER_UNROLL
    for (int i = 0; i < kParts; ++i) part[i] = Simd::add(part[i], other.part[i]);
  }

  // Halves added to each other until one number is left.
  float total() const {
    WideSum sum = *this;
    EDGERUNNER_UNROLL
    for (int width = kParts / 2; width > 0; width /= 2) {
      for (int i = 0; i < width; ++i) sum.part[i] = Simd::add(sum.part[i], sum.part[i + width]);
    }
    return Simd::sum(sum.part[0]);
  }
};

}  // namespace
}  // namespace edgerunner::cpu
