#pragma once

// The products of one group of weights with rows of activations: what the row kernels
// (row_product.h) do with a format.
//
// A Format has
//   S, Layout (row_group.h), kForm;
//   kUnit, kUnitBytes: the consecutive blocks that it reads at a time, and their size;
//   kOffset: what the codes are above the integers of the weights; kHalfCodes: whether the halves
//   of a block have integer factors of their own; read_codes(units, codes[8]): codes of a group,
//   whose i-th unit begins at units(i); read_scales(units): a RowScales.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/codes.h"
#include "backend/cpu/kernels/row_group.h"

namespace edgerunner::cpu {
namespace {

// Beside the codes of a group, by lane.
template <class S>
struct RowScales {
  typename S::F scale[2];       // the second in half_scales only
  typename S::F minimum;        // minimum, half_minima
  typename S::I half_codes;     // the factors of both halves, 2 x 16 bits
  typename S::I minimum_codes;  // half_minima: 2 x 16 bits
};

// Units one after the other, and units of several rows.
template <class Format>
struct AdjacentUnits {
  const std::uint8_t* first;
  const std::uint8_t* operator()(int i) const { return first + i * Format::kUnitBytes; }
};
template <class Format>
struct UnitsOfRows {
  const std::uint8_t* row[Format::S::kLanes / Format::kUnit];
  const std::uint8_t* operator()(int i) const { return row[i]; }
};

// Products of one group of weights with kTokens rows of activations and those of their second terms
// that there are. Those of the i-th go to out + i * tile_stride, the weights' minima to `minima`.
template <class Format, int kTokens, class Units>
inline void multiply_group(const Units& units, const RowGroup<typename Format::S>* x, float* out,
                           std::size_t tile_stride, float* minima) {
  using S = typename Format::S;
  using I = typename S::I;
  typename Format::Codes codes[8];
  Format::read_codes(units, codes);
  const RowScales<S> scales = Format::read_scales(units);
#pragma GCC unroll 8
  for (int t = 0; t < 2 * kTokens; ++t) {
    if (t >= kTokens && x[t].counted == 0) continue;
    typename S::F value;
    if constexpr (Format::kForm == CodeForm::half_scales) {
      I dots[2];
      Format::Layout::template half_dots<Format>(codes, x[t], dots);
      value = S::mul(scales.scale[0], S::to_float(dots[0]));
      value = S::fma(scales.scale[1], S::to_float(dots[1]), value);
    } else if constexpr (Format::kHalfCodes) {
      I dots[2];
      Format::Layout::template half_dots<Format>(codes, x[t], dots);
      const I pairs = S::bit_or(S::bit_and(dots[0], S::set32(0xFFFF)), S::shl32(dots[1], 16));
      value = S::mul(scales.scale[0], S::to_float(S::dot_pairs(pairs, scales.half_codes)));
    } else {
      value =
          S::mul(scales.scale[0], S::to_float(Format::Layout::template dots<Format>(codes, x[t])));
    }
    if constexpr (Format::kForm == CodeForm::half_minima) {
      const I sums = S::load_integers(reinterpret_cast<const std::uint8_t*>(x[t].half_sum));
      value = S::fma(scales.minimum, S::to_float(S::dot_pairs(scales.minimum_codes, sums)), value);
    }
    S::store(out + t * tile_stride, value);
  }
  if constexpr (Format::kForm == CodeForm::minimum) S::store(minima, scales.minimum);
}

// Goes on with a sum by block b of a group; values and minima have a weight row a lane.
template <class Format>
inline typename Format::S::F add_block(const RowGroup<typename Format::S>& x, int b,
                                       typename Format::S::F values, typename Format::S::F minima,
                                       typename Format::S::F sum) {
  using S = typename Format::S;
  sum = S::fma(S::set(x.scale[b]), values, sum);
  if constexpr (Format::kForm == CodeForm::minimum) {
    sum = S::fma(S::set(x.scaled_sum[b]), minima, sum);
  }
  return sum;
}

}  // namespace
}  // namespace edgerunner::cpu
