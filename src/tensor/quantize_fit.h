#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace edgerunner {

// Fitting codes and a scale to a sub-block of weights by least squares: each candidate for the
// scale gives codes by rounding, the codes give the best scale in closed form, and the candidate
// with the smallest weighted squared error wins. Used by the quantisers of the K and IQ4 formats.

// A sub-block: values and what an error of each of them counts.
struct SubBlock {
  std::span<const float> x;
  std::span<const float> weight;  // [x.size()], not negative
};

// The nearest integer, as a float, of |x| < 2^22. Unlike std::rint it becomes vector code.
inline float nearest_whole(float x) { return (x + 0x1.8p23F) - 0x1.8p23F; }

// Adds term(i) for all elements of a sub-block, a multiple of 8 of them, in 8 lanes.
template <class Term>
float sum_of(const SubBlock& block, const Term& term) {
  constexpr std::size_t kLanes = 8;
  std::array<float, kLanes> lanes{};
  for (std::size_t i = 0; i < block.x.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(i + lane);
  }
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +
         ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

// ---- Symmetric formats: x = scale * value(code).

// Codes whose values are the integers from kLow to kHigh.
template <int kLow, int kHigh>
struct IntegerCodes {
  static constexpr float kExtreme = kLow;  // the value with the largest magnitude
  // The value nearest to x.
  static float nearest(float x) {
    const float held = std::min(std::max(x, static_cast<float>(kLow)), static_cast<float>(kHigh));
    return nearest_whole(held);
  }
  static int code(float value) { return static_cast<int>(value) - kLow; }
};

struct SymmetricFit {
  float scale = 0;
  float gain = 0;  // by which the fit lowers the squared error from that of all zeros
};

// The scale that suits the given codes best: sum(w x v) / sum(w v^2).
template <class Codes>
SymmetricFit fit_scale(const SubBlock& block, float inverse) {
  const auto value = [&](std::size_t i) { return Codes::nearest(block.x[i] * inverse); };
  const float xv =
      sum_of(block, [&](std::size_t i) { return block.weight[i] * block.x[i] * value(i); });
  const float vv =
      sum_of(block, [&](std::size_t i) { return block.weight[i] * value(i) * value(i); });
  return vv > 0 ? SymmetricFit{xv / vv, xv * xv / vv} : SymmetricFit{};
}

// Tries scales that put the element with the largest magnitude on and around the extreme code, with
// either sign.
template <class Codes>
SymmetricFit fit_symmetric(const SubBlock& block) {
  constexpr int kSteps = 9;
  float extreme = 0;
  for (const float x : block.x) {
    if (std::abs(x) > std::abs(extreme)) extreme = x;
  }
  SymmetricFit best;
  if (extreme == 0) return best;
  for (int step = -kSteps; step <= kSteps; ++step) {
    const float reach = Codes::kExtreme * (1.0F + 0.025F * static_cast<float>(step));
    for (const float inverse : {reach / extreme, -reach / extreme}) {
      if (!std::isfinite(inverse)) continue;
      const SymmetricFit fit = fit_scale<Codes>(block, inverse);
      if (fit.gain > best.gain) best = fit;
    }
  }
  return best;
}

// The squared error of a sub-block that is coded with that scale.
template <class Codes>
float symmetric_error(const SubBlock& block, float scale) {
  const float inverse = scale == 0 ? 0.0F : 1.0F / scale;
  return sum_of(block, [&](std::size_t i) {
    const float off = block.x[i] - Codes::nearest(block.x[i] * inverse) * scale;
    return block.weight[i] * off * off;
  });
}

// ---- Formats with a minimum: x = scale * code - minimum, codes 0 to last, scale not negative. The
// minimum is not negative either in the K formats, and any number in Q4_1 and Q5_1.
enum class Minimum { not_negative, any };

struct AffineFit {
  float scale = 0;
  float minimum = 0;
};

inline float affine_code(float x, const AffineFit& fit, float inverse, float last) {
  return nearest_whole(std::min(std::max((x + fit.minimum) * inverse, 0.0F), last));
}

inline float affine_inverse(const AffineFit& fit) {
  return fit.scale > 0 ? 1.0F / fit.scale : 0.0F;
}

inline float affine_error(const SubBlock& block, const AffineFit& fit, float last) {
  const float inverse = affine_inverse(fit);
  return sum_of(block, [&](std::size_t i) {
    const float code = affine_code(block.x[i], fit, inverse, last);
    const float off = block.x[i] - (fit.scale * code - fit.minimum);
    return block.weight[i] * off * off;
  });
}

// The scale and minimum that suit the codes of `guess` best.
template <Minimum kMinimum>
AffineFit refit_affine(const SubBlock& block, const AffineFit& guess, float last) {
  const float inverse = affine_inverse(guess);
  const auto code = [&](std::size_t i) { return affine_code(block.x[i], guess, inverse, last); };
  const auto sum = [&](const auto& term) {
    return static_cast<double>(
        sum_of(block, [&](std::size_t i) { return block.weight[i] * term(i); }));
  };
  const double w = sum([](std::size_t) { return 1.0F; });
  const double x = sum([&](std::size_t i) { return block.x[i]; });
  const double q = sum([&](std::size_t i) { return code(i); });
  const double qq = sum([&](std::size_t i) { return code(i) * code(i); });
  const double xq = sum([&](std::size_t i) { return block.x[i] * code(i); });
  const double determinant = w * qq - q * q;
  if (determinant > 0) {
    const double scale = (w * xq - x * q) / determinant;
    const double minimum = (q * xq - qq * x) / determinant;
    if (scale > 0 && (kMinimum == Minimum::any || minimum >= 0)) {
      return {static_cast<float>(scale), static_cast<float>(minimum)};
    }
  }
  // No minimum: the best scale alone.
  return {qq > 0 && xq > 0 ? static_cast<float>(xq / qq) : 0.0F, 0.0F};
}

template <Minimum kMinimum = Minimum::not_negative>
AffineFit fit_affine(const SubBlock& block, float last) {
  constexpr int kSteps = 10;
  float low = kMinimum == Minimum::any ? block.x.front() : 0.0F;
  float high = low;
  for (const float x : block.x) {
    low = std::min(low, x);
    high = std::max(high, x);
  }
  AffineFit best{(high - low) / last, -low};
  float least = affine_error(block, best, last);
  for (int step = -kSteps; step <= kSteps; ++step) {
    const float levels = last * (1.0F + 0.04F * static_cast<float>(step));
    const AffineFit guess{(high - low) / levels, -low};
    const AffineFit fit =
        refit_affine<kMinimum>(block, refit_affine<kMinimum>(block, guess, last), last);
    const float error = affine_error(block, fit, last);
    if (error < least) {
      least = error;
      best = fit;
    }
  }
  return best;
}

}  // namespace edgerunner
