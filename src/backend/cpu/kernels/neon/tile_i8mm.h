#pragma once

// The register tile of quantised weights on the 8-bit matrix instructions, which multiply 8 columns
// of two weight rows with those of two rows of activations at once. The codes stand as
// EightsByRowPair has them; the float operations are those of tile_q8 in panel_tile.h.

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/neon/simd.h"
#include "backend/cpu/kernels/panel_kernel.h"

namespace edgerunner::cpu {
namespace {

// Integer sums of four weight rows with two rows of activations.
struct PairSums {
  int32x4_t rows[2] = {vdupq_n_s32(0), vdupq_n_s32(0)};  // of each pair: [row, token]

  // Columns [8 * begin, 8 * end) of a record and of two blocks.
  void add(const std::uint8_t* record, const Q8Block& first, const Q8Block& second, int begin,
           int end) {
    for (int k = begin; k < end; ++k) {
      const int8x16_t x = vcombine_s8(vld1_s8(first.q + 8 * k), vld1_s8(second.q + 8 * k));
      for (int pair = 0; pair < 2; ++pair) {
        const uint8x16_t codes = vld1q_u8(record + 32 * k + 16 * pair);
        rows[pair] = vmmlaq_s32(rows[pair], vreinterpretq_s8_u8(codes), x);
      }
    }
  }
  // A row a lane.
  int32x4_t of_token(int token) const {
    return token == 0 ? vuzp1q_s32(rows[0], rows[1]) : vuzp2q_s32(rows[0], rows[1]);
  }
};

template <CodeForm kForm, int kP, int kT>
void tile_i8mm(const std::uint8_t* panel, std::uint32_t steps, const std::byte* const* x,
               float* const* sums) {
  using S = Neon;
  constexpr int kVector = S::kLanes * 4;
  constexpr int kRecord = q8_record_vectors(kForm) * kVector;
  constexpr int kPairs = (kT + 1) / 2;
  constexpr bool kHalves = kForm == CodeForm::half_scales;
  float32x4_t sum[kP][kT];
  const Q8Block* rows[2 * kPairs];
  for (int t = 0; t < kT; ++t) {
    rows[t] = reinterpret_cast<const Q8Block*>(x[t]);
    for (int p = 0; p < kP; ++p) sum[p][t] = S::load(sums[t] + p * S::kLanes);
  }
  if constexpr (kT % 2 != 0) rows[kT] = rows[kT - 1];  // its products are not used

  for (std::uint32_t i = 0; i < steps; ++i) {
    PairSums dots[kP][kPairs];
    PairSums second_dots[kHalves ? kP : 1][kHalves ? kPairs : 1];
    for (int p = 0; p < kP; ++p) {
      for (int j = 0; j < kPairs; ++j) {
        const Q8Block& a = rows[2 * j][i];
        const Q8Block& b = rows[2 * j + 1][i];
        dots[p][j].add(panel + p * kRecord, a, b, 0, kHalves ? 2 : 4);
        if constexpr (kHalves) second_dots[p][j].add(panel + p * kRecord, a, b, 2, 4);
      }
    }
    for (int p = 0; p < kP; ++p) {
      const auto* floats = reinterpret_cast<const float*>(panel + p * kRecord + 8 * kVector);
      const float32x4_t scale = S::load(floats);
      for (int t = 0; t < kT; ++t) {
        const Q8Block& block = rows[t][i];
        float32x4_t value = S::mul(scale, S::to_float(dots[p][t / 2].of_token(t % 2)));
        if constexpr (kHalves) {
          const float32x4_t second = S::to_float(second_dots[p][t / 2].of_token(t % 2));
          value = S::fma(S::load(floats + S::kLanes), second, value);
        }
        if constexpr (kForm == CodeForm::half_minima) {
          const int32x4_t codes = S::load_integers(panel + p * kRecord + 10 * kVector);
          const int32x4_t minima = S::dot_pairs(codes, S::broadcast(block.half_sum));
          value = S::fma(S::load(floats + S::kLanes), S::to_float(minima), value);
        }
        sum[p][t] = S::fma(S::set(block.scale), value, sum[p][t]);
        if constexpr (kForm == CodeForm::minimum) {
          sum[p][t] = S::fma(S::set(block.scaled_sum), S::load(floats + S::kLanes), sum[p][t]);
        }
      }
    }
    panel += kP * kRecord;
  }
  for (int t = 0; t < kT; ++t) {
    for (int p = 0; p < kP; ++p) S::store(sums[t] + p * S::kLanes, sum[p][t]);
  }
}

template <CodeForm kForm>
struct MakeI8mm {
  static constexpr int kMaxTokens = Neon::kTokens;
  template <int kP, int kT>
  constexpr Tile tile() const {
    return tile_i8mm<kForm, kP, kT>;
  }
};

}  // namespace
}  // namespace edgerunner::cpu
