#pragma once

// Panels of quantised weights times f32 activations: the records of panel_tile.h, of which each
// code becomes the f32 that dequantize() gives on its way to the products.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/panel_kernel.h"
#include "backend/cpu/kernels/panel_tile.h"

namespace edgerunner::cpu {
namespace {

// A scale times a code is exact, so that adding a minimum by a fused operation rounds once, as
// dequantize() does.
template <class S, CodeForm kForm, int kP, int kT>
void tile_dequantized(const std::uint8_t* panel, std::uint32_t steps, const std::byte* const* x,
                      float* const* sums) {
  using F = typename S::F;
  using I = typename S::I;
  constexpr bool kSigned = kForm == CodeForm::signed_codes || kForm == CodeForm::half_scales;
  constexpr int kVector = S::kLanes * 4;
  constexpr int kRecord = q8_record_vectors(kForm) * kVector;
  F sum[kP][kT];
  const float* rows[kT];
  for (int t = 0; t < kT; ++t) {
    rows[t] = reinterpret_cast<const float*>(x[t]);
    for (int p = 0; p < kP; ++p) sum[p][t] = S::load(sums[t] + p * S::kLanes);
  }
  const auto vector = [](const std::uint8_t* record, int v) {
    return S::load(reinterpret_cast<const float*>(record + v * kVector));
  };
  for (std::uint32_t i = 0; i < steps; ++i) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      F scale[kP];
      F minimum[kP];
      for (int p = 0; p < kP; ++p) {
        const std::uint8_t* record = panel + p * kRecord;
        scale[p] = vector(record, kForm == CodeForm::half_scales ? 8 + half : 8);
        if constexpr (!kSigned) minimum[p] = vector(record, 9);
        if constexpr (kForm == CodeForm::half_minima) {
          const I pair = S::load_integers(record + 10 * kVector);
          minimum[p] =
              S::mul(minimum[p], S::to_float(S::sar32(half == 0 ? S::shl32(pair, 16) : pair, 16)));
        }
      }
      for (int k = 4 * half; k < 4 * half + 4; ++k) {
        I codes[kP];
        for (int p = 0; p < kP; ++p) {
          codes[p] = S::load_integers(panel + p * kRecord + k * kVector);
          if constexpr (kSigned) codes[p] = S::bit_xor(codes[p], S::set8(kCodeOffset));
        }
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) {
          F w[kP];
          for (int p = 0; p < kP; ++p) {
            const I high = S::shl32(codes[p], 24 - 8 * j);
            if constexpr (kSigned) {
              w[p] = S::mul(scale[p], S::to_float(S::sar32(high, 24)));
            } else {
              w[p] = S::fma(scale[p], S::to_float(S::shr32(high, 24)), minimum[p]);
            }
          }
#pragma GCC unroll 8
          for (int t = 0; t < kT; ++t) {
            const F value = S::set(rows[t][32 * std::size_t{i} + 4 * k + j]);
            for (int p = 0; p < kP; ++p) sum[p][t] = S::fma(w[p], value, sum[p][t]);
          }
        }
      }
    }
    panel += kP * kRecord;
  }
  for (int t = 0; t < kT; ++t) {
    for (int p = 0; p < kP; ++p) S::store(sums[t] + p * S::kLanes, sum[p][t]);
  }
}

template <class S, CodeForm kForm>
struct MakeDequantized {
  static constexpr int kMaxTokens = S::kTokens;
  template <int kP, int kT>
  constexpr Tile tile() const {
    return tile_dequantized<S, kForm, kP, kT>;
  }
};

template <class S, CodeForm kForm>
constexpr PanelKernel<S> dequantized_kernel(Unpack<S> unpack) {
  PanelKernel<S> kernel{kQ8Length,
                        kQ8Length * sizeof(float),
                        q8_record_vectors(kForm) * S::kLanes * std::size_t{4},
                        unpack,
                        S::kTokens,
                        {}};
  fill_tiles(kernel, MakeDequantized<S, kForm>{});
  return kernel;
}

}  // namespace
}  // namespace edgerunner::cpu
