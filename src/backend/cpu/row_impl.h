#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/exp2_impl.h"
#include "backend/cpu/vector_kernels.h"

// Operations on a row or a head, written once over `Simd`, which the including translation unit
// brings.
namespace edgerunner::cpu {
namespace {

void rms_norm(const float* x, const float* weight, std::uint32_t size, float epsilon, float* out) {
  using Vector = typename Simd::Vector;
  // Four sums hide the latency of an addition.
  Vector sums[4] = {Simd::broadcast(0.0F), Simd::broadcast(0.0F), Simd::broadcast(0.0F),
                    Simd::broadcast(0.0F)};
  std::uint32_t i = 0;
  for (; i + 4 * Simd::kLanes <= size; i += 4 * Simd::kLanes) {
    for (int k = 0; k < 4; ++k) {
      const Vector part = Simd::load(x + i + k * Simd::kLanes);
      sums[k] = Simd::fma(part, part, sums[k]);
    }
  }
  for (; i + Simd::kLanes <= size; i += Simd::kLanes) {
    const Vector part = Simd::load(x + i);
    sums[0] = Simd::fma(part, part, sums[0]);
  }
  float squares = Simd::sum(Simd::add(Simd::add(sums[0], sums[1]), Simd::add(sums[2], sums[3])));
  for (; i < size; ++i) squares += x[i] * x[i];

  const float scale = 1.0F / Simd::square_root(squares / static_cast<float>(size) + epsilon);
  const Vector scales = Simd::broadcast(scale);
  for (i = 0; i + Simd::kLanes <= size; i += Simd::kLanes) {
    Simd::store(out + i, Simd::mul(Simd::mul(Simd::load(x + i), scales), Simd::load(weight + i)));
  }
  for (; i < size; ++i) out[i] = x[i] * scale * weight[i];
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
    out[i] = (x[i] * rotation.cosine[i] + x[partner] * rotation.sine[i]) * scale;
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

// Values in the range of the cache's element type; not a number stays so.
template <class B>
typename Simd::Vector in_range(typename Simd::Vector x) {
  if constexpr (sizeof(B) < sizeof(float)) {
    x = Simd::max(Simd::broadcast(-65504.0F), x);
    x = Simd::min(Simd::broadcast(65504.0F), x);
  }
  return x;
}

template <class B>
void store_head(const float* x, std::uint32_t size, B* out) {
  std::uint32_t i = 0;
  for (; i + Simd::kLanes <= size; i += Simd::kLanes) {
    Simd::store(out + i, in_range<B>(Simd::load(x + i)));
  }
  if (i == size) return;
  float rest[Simd::kLanes] = {};
  B converted[Simd::kLanes];
  for (std::uint32_t k = i; k < size; ++k) rest[k - i] = x[k];
  Simd::store(converted, in_range<B>(Simd::load(rest)));
  for (std::uint32_t k = i; k < size; ++k) out[k] = converted[k - i];
}

template <class B>
void store_keys_as(const float* keys, std::size_t stride, std::uint32_t tokens, std::uint32_t first,
                   std::uint32_t head_dim, B* block, B* rows) {
  for (std::uint32_t t = 0; t < tokens; ++t) {
    store_head(keys + t * stride, head_dim, rows + std::size_t{t} * head_dim);
  }
  for (std::uint32_t d = 0; d < head_dim; ++d) {
    B* line = block + std::size_t{d} * kPageTokens + first;
    for (std::uint32_t t = 0; t < tokens; ++t) line[t] = rows[std::size_t{t} * head_dim + d];
  }
}

void store_keys(const float* keys, std::size_t stride, std::uint32_t tokens, std::uint32_t first,
                const KvHeadLayout& layout, std::byte* block, std::byte* scratch) {
  if (layout.precision == KvPrecision::f16) {
    store_keys_as(keys, stride, tokens, first, layout.head_dim,
                  reinterpret_cast<std::uint16_t*>(block),
                  reinterpret_cast<std::uint16_t*>(scratch));
  } else {
    store_keys_as(keys, stride, tokens, first, layout.head_dim, reinterpret_cast<float*>(block),
                  reinterpret_cast<float*>(scratch));
  }
}

template <class B>
void store_values_as(const float* values, std::size_t stride, std::uint32_t tokens,
                     std::uint32_t first, const KvHeadLayout& layout, B* block) {
  for (std::uint32_t t = 0; t < tokens; ++t) {
    store_head(values + t * stride, layout.head_dim,
               block + std::size_t{first + t} * layout.value_stride());
  }
}

void store_values(const float* values, std::size_t stride, std::uint32_t tokens,
                  std::uint32_t first, const KvHeadLayout& layout, std::byte* block) {
  std::byte* begin = block + layout.key_bytes();
  if (layout.precision == KvPrecision::f16) {
    store_values_as(values, stride, tokens, first, layout, reinterpret_cast<std::uint16_t*>(begin));
  } else {
    store_values_as(values, stride, tokens, first, layout, reinterpret_cast<float*>(begin));
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
