#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace edgerunner {

// e^x for x <= 0, with a relative error under 3e-7, from operations that IEEE 754 defines alone:
// the same bits on every machine, unlike the C library's, and without a branch, so that the
// compiler can vectorise a loop of it. 0 below -87.7, where e^x would be a subnormal number.
//
// x = k ln2 + r with |r| <= ln2/2; e^r by its Taylor polynomial of degree 7, whose remainder is
// r^8/8! < 6e-9.
constexpr float exp_of_negative(float x) {
  constexpr float kLowest = -88.0F;  // gives k = -127, whose scale is 0
  constexpr float kLog2e = 1.44269504F;
  constexpr float kLn2High = 0.693145752F;  // few bits, so that k * kLn2High is exact
  constexpr float kLn2Low = 1.42860677e-6F;
  // max(x, kLowest): among numbers of one sign the bits order as the numbers' magnitudes do, and
  // the compiler won't turn a comparison of floats into straight code.
  const float clamped = std::bit_cast<float>(
      std::min(std::bit_cast<std::uint32_t>(x), std::bit_cast<std::uint32_t>(kLowest)));
  const auto k = static_cast<std::int32_t>(clamped * kLog2e - 0.5F);  // truncates towards 0
  const auto kf = static_cast<float>(k);
  const float r = (clamped - kf * kLn2High) - kf * kLn2Low;
  float p = 1.0F / 5040.0F;
  p = p * r + 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  return p * std::bit_cast<float>((k + 127) << 23);
}

}  // namespace edgerunner
