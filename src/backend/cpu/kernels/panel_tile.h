#pragma once

// The register tiles: kP panels of S::kLanes weight rows each, times kT rows of activations. A tile
// continues the sums of its outputs over a chunk of columns, in the order that matmul.h states.
// Written once over a set of vector operations S; included by the translation unit of each
// instruction set, in which everything here has internal linkage.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/codes.h"
#include "backend/cpu/kernels/q8_block.h"

namespace edgerunner::cpu {
namespace {

// A chunk of weights as it stands in scratch: for each step along the columns, for each panel, one
// record of vectors with a weight row a lane.
//   f32:   a step is one column: [value]
//   q8:    a step is a 32-block: [codes of columns 4k to 4k + 3] for k < 8, [scale], then
//          minimum:     [minimum]
//          half_scales: [scale of the second half]
//          half_minima: [minimum], [minimum_code as two 16-bit integers]
constexpr int q8_record_vectors(CodeForm form) {
  switch (form) {
    case CodeForm::signed_codes:
      return 9;
    case CodeForm::minimum:
    case CodeForm::half_scales:
      return 10;
    case CodeForm::half_minima:
      return 11;
  }
  return 0;
}

// `sums` holds kT pointers to [kP * S::kLanes]; `x` as many to the chunk's first activation.
template <class S, int kP, int kT>
void tile_f32(const std::uint8_t* panel, std::uint32_t steps, const std::byte* const* x,
              float* const* sums) {
  typename S::F sum[kP][kT];
  const float* rows[kT];
  for (int t = 0; t < kT; ++t) {
    rows[t] = reinterpret_cast<const float*>(x[t]);
    for (int p = 0; p < kP; ++p) sum[p][t] = S::load(sums[t] + p * S::kLanes);
  }
  const auto* weights = reinterpret_cast<const float*>(panel);
  for (std::uint32_t i = 0; i < steps; ++i) {
    typename S::F w[kP];
    for (int p = 0; p < kP; ++p) w[p] = S::load(weights + p * S::kLanes);
    for (int t = 0; t < kT; ++t) {
      const typename S::F value = S::set(rows[t][i]);
      for (int p = 0; p < kP; ++p) sum[p][t] = S::fma(w[p], value, sum[p][t]);
    }
    weights += kP * S::kLanes;
  }
  for (int t = 0; t < kT; ++t) {
    for (int p = 0; p < kP; ++p) S::store(sums[t] + p * S::kLanes, sum[p][t]);
  }
}

template <class S, CodeForm kForm, int kP, int kT>
void tile_q8(const std::uint8_t* panel, std::uint32_t steps, const std::byte* const* x,
             float* const* sums) {
  using F = typename S::F;
  using I = typename S::I;
  constexpr bool kSigned = kForm == CodeForm::signed_codes || kForm == CodeForm::half_scales;
  constexpr int kVector = S::kLanes * 4;
  constexpr int kRecord = q8_record_vectors(kForm) * kVector;
  F sum[kP][kT];
  const Q8Block* rows[kT];
  for (int t = 0; t < kT; ++t) {
    rows[t] = reinterpret_cast<const Q8Block*>(x[t]);
    for (int p = 0; p < kP; ++p) sum[p][t] = S::load(sums[t] + p * S::kLanes);
  }
  const auto vector = [](const std::uint8_t* record, int v) {
    return S::load(reinterpret_cast<const float*>(record + v * kVector));
  };
  for (std::uint32_t i = 0; i < steps; ++i) {
    I dots[kP][kT];
    const auto add_products = [&](int begin, int end) {
#pragma GCC unroll 8
      for (int k = begin; k < end; ++k) {
        typename S::Codes codes[kP];
#pragma GCC unroll 8
        for (int p = 0; p < kP; ++p) {
          codes[p] = S::template load_codes<kSigned>(panel + p * kRecord + k * kVector);
        }
#pragma GCC unroll 8
        for (int t = 0; t < kT; ++t) {
          const I four = S::broadcast(rows[t][i].q + 4 * k);
#pragma GCC unroll 8
          for (int p = 0; p < kP; ++p) {
            dots[p][t] = S::template dot<kSigned>(dots[p][t], codes[p], four);
          }
        }
      }
    };
    F first[kP][kT];  // of half_scales: the first half's part
    if constexpr (kForm == CodeForm::half_scales) {
      I starts[kT];
#pragma GCC unroll 8
      for (int t = 0; t < kT; ++t) {
        starts[t] = S::start_first_half(rows[t][i]);
#pragma GCC unroll 8
        for (int p = 0; p < kP; ++p) dots[p][t] = starts[t];
      }
      add_products(0, 4);
#pragma GCC unroll 8
      for (int t = 0; t < kT; ++t) {
        starts[t] = S::start_second_half(rows[t][i], S::start_first_half(rows[t][i]));
#pragma GCC unroll 8
        for (int p = 0; p < kP; ++p) {
          first[p][t] = S::mul(vector(panel + p * kRecord, 8), S::to_float(dots[p][t]));
          dots[p][t] = starts[t];
        }
      }
      add_products(4, 8);
    } else {
#pragma GCC unroll 8
      for (int t = 0; t < kT; ++t) {
        const I start = kSigned ? S::start(rows[t][i]) : S::zero_integers();
#pragma GCC unroll 8
        for (int p = 0; p < kP; ++p) dots[p][t] = start;
      }
      add_products(0, 8);
    }
#pragma GCC unroll 8
    for (int p = 0; p < kP; ++p) {
      const std::uint8_t* record = panel + p * kRecord;
#pragma GCC unroll 8
      for (int t = 0; t < kT; ++t) {
        const Q8Block& block = rows[t][i];
        F value = S::to_float(dots[p][t]);
        if constexpr (kForm == CodeForm::half_scales) {
          value = S::fma(vector(record, 9), value, first[p][t]);
        } else {
          value = S::mul(vector(record, 8), value);
        }
        if constexpr (kForm == CodeForm::half_minima) {
          const I minima =
              S::dot_pairs(S::load_integers(record + 10 * kVector), S::broadcast(block.half_sum));
          value = S::fma(vector(record, 9), S::to_float(minima), value);
        }
        sum[p][t] = S::fma(S::set(block.scale), value, sum[p][t]);
        if constexpr (kForm == CodeForm::minimum) {
          sum[p][t] = S::fma(S::set(block.scaled_sum), vector(record, 9), sum[p][t]);
        }
      }
    }
    panel += kP * kRecord;
  }
  for (int t = 0; t < kT; ++t) {
    for (int p = 0; p < kP; ++p) S::store(sums[t] + p * S::kLanes, sum[p][t]);
  }
}

}  // namespace
}  // namespace edgerunner::cpu
