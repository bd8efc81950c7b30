#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "backend/cpu/exp2_impl.h"
#include "backend/cpu/simd/wide_sum.h"
#include "backend/cpu/vector_kernels.h"

// Operations on a row or a head, written once over `Simd`, which the including translation unit
// brings.
namespace edgerunner::cpu {
namespace {

void rms_norm(const float* x, const float* weight, std::uint32_t size, float epsilon, float* out) {
  using Vector = typename Simd::Vector;
  const auto add_squares = [](const float* from, WideSum& sum) {
    EDGERUNNER_UNROLL
    for (int k = 0; k < WideSum::kParts; ++k) {
      const Vector part = Simd::load(from + k * Simd::kLanes);
      sum.part[k] = Simd::fma(part, part, sum.part[k]);
    }
  };
  // Several sums hide the latency of an addition.
  WideSum even = WideSum::zero();
  WideSum odd = WideSum::zero();
  std::uint32_t i = 0;
  for (; i + 2 * WideSum::kLanes <= size; i += 2 * WideSum::kLanes) {
    add_squares(x + i, even);
    add_squares(x + i + WideSum::kLanes, odd);
  }
  for (; i + WideSum::kLanes <= size; i += WideSum::kLanes) add_squares(x + i, even);
  even.add(odd);
  float squares = even.total();
  for (; i < size; ++i) squares += x[i] * x[i];

  const float scale = 1.0F / Simd::square_root(squares / static_cast<float>(size) + epsilon);
  const Vector scales = Simd::broadcast(scale);
  for (i = 0; i + Simd::kLanes <= size; i += Simd::kLanes) {
    Simd::store(out + i, Simd::mul(Simd::mul(Simd::load(x + i), scales), Simd::load(weight + i)));
  }
  for (; i < size; ++i) out[i] = x[i] * scale * weight[i];
}

void layer_norm(const float* x, const float* weight, const float* bias, std::uint32_t size,
                float epsilon, float* out) {
  WideSum sums = WideSum::zero();
  std::uint32_t i = 0;
  for (; i + WideSum::kLanes <= size; i += WideSum::kLanes) sums.add(WideSum::load(x + i));
  float sum = sums.total();
  for (; i < size; ++i) sum += x[i];
  const float mean = sum / static_cast<float>(size);
  for (i = 0; i < size; ++i) out[i] = x[i] - mean;
  rms_norm(out, weight, size, epsilon, out);
  for (i = 0; i < size; ++i) out[i] += bias[i];
}

// y / (1 + e^(-2u)) with u = sqrt(2 / pi) (y + 0.044715 y^3), as a / (a + b) with
// a = e^min(2u, 0) and b = e^min(-2u, 0).
void gelu(const float* x, std::uint32_t size, float* out) {
  const auto zero = Simd::broadcast(0.0F);
  for (std::uint32_t i = 0; i < size; i += Simd::kLanes) {
    float part[Simd::kLanes] = {};
    const std::uint32_t count = size - i < Simd::kLanes ? size - i : Simd::kLanes;
    for (std::uint32_t k = 0; k < count; ++k) part[k] = x[i + k];
    const auto y = Simd::load(part);
    const auto inner =
        Simd::fma(Simd::mul(y, y), Simd::broadcast(0.044715F), Simd::broadcast(1.0F));
    // 2 sqrt(2 / pi) log2(e)
    const auto twice = Simd::mul(Simd::mul(y, Simd::broadcast(0x1.26aec2p+1F)), inner);
    const auto a = exp2(Simd::min(twice, zero));
    const auto b = exp2(Simd::min(Simd::sub(zero, twice), zero));
    Simd::store(part, Simd::mul(y, Simd::div(a, Simd::add(a, b))));
    for (std::uint32_t k = 0; k < count; ++k) out[i + k] = part[k];
  }
}

void rotate(const float* x, const Rotation& rotation, std::uint32_t head_dim, float scale,
            float* out) {
  using Vector = typename Simd::Vector;
  const std::uint32_t dims = rotation.dims;
  const std::uint32_t half = dims / 2;
  const Vector scales = Simd::broadcast(scale);
  const auto turn = [&](std::uint32_t i, Vector own, Vector partner) {
    const Vector turned = Simd::fma(own, Simd::load(rotation.cosine + i),
                                    Simd::mul(partner, Simd::load(rotation.sine + i)));
    Simd::store(out + i, Simd::mul(turned, scales));
  };
  const auto turn_one = [&](std::uint32_t i, std::uint32_t partner) {
    out[i] = std::fma(x[i], rotation.cosine[i], x[partner] * rotation.sine[i]) * scale;
  };
  std::uint32_t i = 0;
  if (rotation.layout == RopeLayout::interleaved) {
    for (; i + Simd::kLanes <= dims; i += Simd::kLanes) {
      const Vector own = Simd::load(x + i);
      turn(i, own, Simd::swap_pairs(own));
    }
    for (; i < dims; ++i) turn_one(i, i ^ 1U);
  } else {
    for (; i + Simd::kLanes <= half; i += Simd::kLanes) {
      const Vector low = Simd::load(x + i);
      const Vector high = Simd::load(x + half + i);
      turn(i, low, high);
      turn(half + i, high, low);
    }
    for (; i < half; ++i) {
      turn_one(i, half + i);
      turn_one(half + i, i);
    }
  }
  for (i = dims; i < head_dim; ++i) out[i] = x[i] * scale;
}

void soft_cap_of(float* x, std::uint32_t size, float scale, float cap) {
  for (std::uint32_t i = 0; i < size; i += Simd::kLanes) {
    float part[Simd::kLanes] = {};
    const std::uint32_t count = size - i < Simd::kLanes ? size - i : Simd::kLanes;
    for (std::uint32_t k = 0; k < count; ++k) part[k] = x[i + k] * scale;
    if (cap != 0) Simd::store(part, soft_cap(Simd::load(part), cap));
    for (std::uint32_t k = 0; k < count; ++k) x[i + k] = part[k];
  }
}

void exp2_of(const float* x, std::uint32_t size, float* out) {
  for (std::uint32_t i = 0; i < size; i += Simd::kLanes) {
    float part[Simd::kLanes] = {};
    const std::uint32_t count = size - i < Simd::kLanes ? size - i : Simd::kLanes;
    for (std::uint32_t k = 0; k < count; ++k) part[k] = x[i + k];
    Simd::store(part, exp2(Simd::load(part)));
    for (std::uint32_t k = 0; k < count; ++k) out[i + k] = part[k];
  }
}

}  // namespace
}  // namespace edgerunner::cpu
