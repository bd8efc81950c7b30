#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "backend/cpu/vector_kernels.h"

// Writing keys and values to the cache, written once over `Simd`, which the including translation
// unit brings.
namespace edgerunner::cpu {
namespace {

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

// Eight bits a value: scale = max|x| / 127 and x / scale rounded to nearest, ties to even, so that
// the error is at most scale * (1/2 + 2^-16). Returns the scale. A head that holds an infinity or a
// NaN has scale NaN, so that whatever attends to it is NaN; one so small that its reciprocal would
// not be finite counts as zeros.
float quantise_head(const float* x, std::uint32_t size, std::int8_t* out) {
  using Vector = typename Simd::Vector;
  constexpr float kSmallest = 0x1p-118F;
  Vector top = Simd::broadcast(0.0F);
  Vector zeros = Simd::broadcast(0.0F);  // stay zeros while all is finite
  std::uint32_t i = 0;
  for (; i + Simd::kLanes <= size; i += Simd::kLanes) {
    const Vector part = Simd::load(x + i);
    top = Simd::max(Simd::absolute(part), top);
    zeros = Simd::fma(part, Simd::broadcast(0.0F), zeros);
  }
  float largest = Simd::largest(top);
  float zero = Simd::sum(zeros);
  for (std::uint32_t k = i; k < size; ++k) {
    largest = std::abs(x[k]) > largest ? std::abs(x[k]) : largest;
    zero += x[k] * 0.0F;
  }
  const bool finite = zero == 0.0F;
  if (!finite || largest < kSmallest) {
    for (i = 0; i < size; ++i) out[i] = 0;
    return finite ? 0.0F : std::numeric_limits<float>::quiet_NaN();
  }
  const Vector inverse = Simd::broadcast(127.0F / largest);
  const auto codes = [inverse](Vector part) { return Simd::round(Simd::mul(part, inverse)); };
  for (i = 0; i + Simd::kLanes <= size; i += Simd::kLanes) {
    Simd::store(out + i, codes(Simd::load(x + i)));
  }
  if (i < size) {
    float rest[Simd::kLanes] = {};
    std::int8_t converted[Simd::kLanes];
    for (std::uint32_t k = i; k < size; ++k) rest[k - i] = x[k];
    Simd::store(converted, codes(Simd::load(rest)));
    for (std::uint32_t k = i; k < size; ++k) out[k] = converted[k - i];
  }
  return largest / 127.0F;
}

template <class B>
void transpose_keys(const B* rows, std::uint32_t tokens, std::uint32_t first,
                    std::uint32_t head_dim, std::byte* block) {
  for (std::uint32_t d = 0; d < head_dim; ++d) {
    B* line = reinterpret_cast<B*>(block) + std::size_t{d} * kPageTokens + first;
    for (std::uint32_t t = 0; t < tokens; ++t) line[t] = rows[std::size_t{t} * head_dim + d];
  }
}

template <class B>
void store_keys_as(const float* keys, std::size_t stride, std::uint32_t tokens, std::uint32_t first,
                   std::uint32_t head_dim, std::byte* block, std::byte* scratch) {
  B* rows = reinterpret_cast<B*>(scratch);
  for (std::uint32_t t = 0; t < tokens; ++t) {
    store_head(keys + t * stride, head_dim, rows + std::size_t{t} * head_dim);
  }
  transpose_keys(rows, tokens, first, head_dim, block);
}

void quantise_keys(const float* keys, std::size_t stride, std::uint32_t tokens, std::uint32_t first,
                   const KvHeadLayout& layout, std::byte* block, std::byte* scratch) {
  std::int8_t* rows = reinterpret_cast<std::int8_t*>(scratch);
  float* scales = reinterpret_cast<float*>(block + layout.key_scales()) + first;
  for (std::uint32_t t = 0; t < tokens; ++t) {
    scales[t] =
        quantise_head(keys + t * stride, layout.head_dim, rows + std::size_t{t} * layout.head_dim);
  }
  transpose_keys(rows, tokens, first, layout.head_dim, block);
}

void store_keys(const float* keys, std::size_t stride, std::uint32_t tokens, std::uint32_t first,
                const KvHeadLayout& layout, std::byte* block, std::byte* scratch) {
  switch (layout.precision) {
    case KvPrecision::f16:
      store_keys_as<std::uint16_t>(keys, stride, tokens, first, layout.head_dim, block, scratch);
      return;
    case KvPrecision::f32:
      store_keys_as<float>(keys, stride, tokens, first, layout.head_dim, block, scratch);
      return;
    case KvPrecision::q8:
      quantise_keys(keys, stride, tokens, first, layout, block, scratch);
      return;
  }
}

template <class B>
void store_values_as(const float* values, std::size_t stride, std::uint32_t tokens,
                     std::uint32_t first, const KvHeadLayout& layout, std::byte* block) {
  B* begin = reinterpret_cast<B*>(block + layout.values());
  for (std::uint32_t t = 0; t < tokens; ++t) {
    store_head(values + t * stride, layout.head_dim,
               begin + std::size_t{first + t} * layout.value_stride());
  }
}

void quantise_values(const float* values, std::size_t stride, std::uint32_t tokens,
                     std::uint32_t first, const KvHeadLayout& layout, std::byte* block) {
  std::int8_t* begin = reinterpret_cast<std::int8_t*>(block + layout.values());
  float* scales = reinterpret_cast<float*>(block + layout.value_scales()) + first;
  for (std::uint32_t t = 0; t < tokens; ++t) {
    scales[t] = quantise_head(values + t * stride, layout.head_dim,
                              begin + std::size_t{first + t} * layout.value_stride());
  }
}

void store_values(const float* values, std::size_t stride, std::uint32_t tokens,
                  std::uint32_t first, const KvHeadLayout& layout, std::byte* block) {
  switch (layout.precision) {
    case KvPrecision::f16:
      store_values_as<std::uint16_t>(values, stride, tokens, first, layout, block);
      return;
    case KvPrecision::f32:
      store_values_as<float>(values, stride, tokens, first, layout, block);
      return;
    case KvPrecision::q8:
      quantise_values(values, stride, tokens, first, layout, block);
      return;
  }
}

}  // namespace
}  // namespace edgerunner::cpu
