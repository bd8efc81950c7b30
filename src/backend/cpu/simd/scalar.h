#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "base/half.h"

// Four floats in portable C++, for the algorithms that are written once over `Simd`. A fused
// multiply-add is a library call here: slow, but the bits are those of the other sets.
namespace edgerunner::cpu {
namespace {

struct Simd {
  static constexpr int kLanes = 4;
  static constexpr int kPanelVectors = 2;
  struct Vector {
    float lane[kLanes];
  };

  template <class F>
  static Vector each(F value) {
    Vector x;
    for (int i = 0; i < kLanes; ++i) x.lane[i] = value(i);
    return x;
  }

  static Vector load(const float* from) {
    return each([&](int i) { return from[i]; });
  }
  static Vector load(const std::uint16_t* from) {
    return each([&](int i) { return f16_to_f32(from[i]); });
  }
  static Vector load(const std::int8_t* from) {
    return each([&](int i) { return static_cast<float>(from[i]); });
  }
  static void store(float* to, Vector x) {
    for (int i = 0; i < kLanes; ++i) to[i] = x.lane[i];
  }
  static void store(std::uint16_t* to, Vector x) {
    for (int i = 0; i < kLanes; ++i) to[i] = f32_to_f16(x.lane[i]);
  }
  // x is whole, from -128 to 127.
  static void store(std::int8_t* to, Vector x) {
    for (int i = 0; i < kLanes; ++i) to[i] = static_cast<std::int8_t>(x.lane[i]);
  }
  static Vector broadcast(float x) {
    return each([&](int) { return x; });
  }
  static Vector add(Vector a, Vector b) {
    return each([&](int i) { return a.lane[i] + b.lane[i]; });
  }
  static Vector sub(Vector a, Vector b) {
    return each([&](int i) { return a.lane[i] - b.lane[i]; });
  }
  static Vector mul(Vector a, Vector b) {
    return each([&](int i) { return a.lane[i] * b.lane[i]; });
  }
  static Vector div(Vector a, Vector b) {
    return each([&](int i) { return a.lane[i] / b.lane[i]; });
  }
  static Vector fma(Vector a, Vector b, Vector c) {
    return each([&](int i) { return std::fma(a.lane[i], b.lane[i], c.lane[i]); });
  }
  // min and max give b where a is not a number.
  static Vector min(Vector a, Vector b) {
    return each([&](int i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  static Vector max(Vector a, Vector b) {
    return each([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  static Vector absolute(Vector x) {
    return each([&](int i) { return std::abs(x.lane[i]); });
  }
  static Vector round(Vector x) {  // |x| < 2^22: adding 1.5 * 2^23 leaves no place for a fraction
    return each([&](int i) { return (x.lane[i] + 0x1.8p23F) - 0x1.8p23F; });
  }
  // x * 2^n where exponent >= least, else 0; n whole and at least -125, x in [0.5, 2].
  static Vector scale_by_power(Vector x, Vector n, Vector exponent, Vector least) {
    return each([&](int i) {
      const auto shifted = static_cast<std::uint32_t>(static_cast<std::int32_t>(n.lane[i])) << 23;
      const float scaled = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x.lane[i]) + shifted);
      return exponent.lane[i] < least.lane[i] ? 0.0F : scaled;
    });
  }
  // Lanes begin to end - 1 of x, the others of `other`.
  static Vector select(Vector x, Vector other, int begin, int end) {
    return each([&](int i) { return i >= begin && i < end ? x.lane[i] : other.lane[i]; });
  }
  static Vector swap_pairs(Vector x) {
    return each([&](int i) { return x.lane[i ^ 1]; });
  }
  static float sum(Vector x) { return (x.lane[0] + x.lane[2]) + (x.lane[1] + x.lane[3]); }
  static float largest(Vector x) {
    float result = x.lane[0];
    for (int i = 1; i < kLanes; ++i) result = x.lane[i] > result ? x.lane[i] : result;
    return result;
  }
  static float square_root(float x) { return std::sqrt(x); }
};

}  // namespace
}  // namespace edgerunner::cpu
