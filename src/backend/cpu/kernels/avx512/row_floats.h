#pragma once

// Few rows of f32 activations times weights of f32, bfloat16 and f16. Outputs are sums over single
// columns in their order, so that weights are transposed, a square of 16 rows by 16 columns at a
// time, but multiplied from the registers.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/avx512/simd.h"
#include "backend/cpu/kernels/avx512/transpose.h"
#include "backend/cpu/kernels/instruction_sets.h"
#include "backend/cpu/kernels/outputs.h"

namespace edgerunner::cpu {
namespace {

// How weights stand in the file.
enum class FloatWeights : std::uint8_t { f32, bf16, f16 };

constexpr std::size_t bytes_of(FloatWeights weights) {
  return weights == FloatWeights::f32 ? 4 : 2;
}

// 16 columns of a row: all of them, or those of `there`.
template <FloatWeights kWeights, bool kWhole>
inline __m512i load_columns(const std::uint8_t* p, __mmask16 there) {
  if constexpr (kWeights == FloatWeights::f32) {
    return kWhole ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi32(there, p);
  } else {
    const __m256i halves = kWhole ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))
                                  : _mm256_maskz_loadu_epi16(there, p);
    if constexpr (kWeights == FloatWeights::f16)
      return _mm512_castps_si512(_mm512_cvtph_ps(halves));
    return _mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16);
  }
}

template <FloatWeights kWeights, int kTokens>
class FloatRows {
 public:
  using S = Avx512;

  FloatRows(const RawProduct& product, float* sums) : product_(product), sums_(sums) {
    for (std::uint32_t t = 0; t < kTokens; ++t) {
      x_[t] = reinterpret_cast<const float*>(product.x + t * product.x_stride);
    }
  }

  void run(std::uint32_t row_begin, std::uint32_t row_end) {
    prefetch(product_.weights + row_begin * product_.row_bytes,
             (row_end - row_begin < kRows ? row_end - row_begin : kRows) * product_.row_bytes);
    for (std::uint32_t row = row_begin; row < row_end; row += kRows) {
      const std::uint32_t rows = row_end - row < kRows ? row_end - row : kRows;
      const std::uint8_t* ahead = row_end - row > kRows
                                      ? product_.weights + (row + kRows) * product_.row_bytes
                                      : product_.after(row_end);
      if constexpr (kMostPanels == 2) {
        if (rows > kLanes) {
          run_panels<2>(row, rows, ahead);
          continue;
        }
      }
      run_panels<1>(row, rows, ahead);
    }
  }

 private:
  static constexpr std::uint32_t kLanes = S::kLanes;
  // Two panels in turn, so that the sums of one are not waited for while the other's are under way,
  // where both leave registers for a square.
  static constexpr std::uint32_t kMostPanels = kTokens <= 2 ? 2 : 1;
  static constexpr std::uint32_t kRows = kMostPanels * kLanes;
  static constexpr std::size_t kStepBytes = kLanes * bytes_of(kWeights);  // of a row
  static constexpr std::size_t kSquareBytes = kStepBytes * kLanes;
  // Sums beside the sixteen vectors of a square; the others wait in memory.
  static constexpr int kSumsAtOnce = 4;

  static void prefetch(const std::uint8_t* begin, std::size_t size) {
    for (std::size_t line = 0; line < size; line += 64) __builtin_prefetch(begin + line, 0, 2);
  }

  // Into the level 1 cache, since a square begins with all of its loads.
  static void prefetch_square(const std::uint8_t* const* rows, std::uint32_t square) {
#pragma GCC unroll 16
    for (std::uint32_t r = 0; r < kLanes; ++r) {
      __builtin_prefetch(rows[r] + kStepBytes * square, 0, 3);
    }
  }

  // Fetches as much as it reads at `ahead`.
  template <int kPanels>
  void run_panels(std::uint32_t row, std::uint32_t rows, const std::uint8_t* ahead) {
    const std::uint8_t* weights[kPanels][kLanes];
    __m512 sums[kPanels][kTokens];
    for (std::uint32_t p = 0; p < kPanels; ++p) {
      for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        const std::uint32_t r = row + p * kLanes + lane;
        weights[p][lane] =
            product_.weights + (r < row + rows ? r : row + rows - 1) * product_.row_bytes;
      }
      for (int t = 0; t < kTokens; ++t) sums[p][t] = S::zero();
    }
    const std::uint32_t squares = product_.cols / kLanes;
    for (std::uint32_t square = 0; square < squares; ++square) {
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) {
        prefetch(ahead, kSquareBytes);
        prefetch_square(weights[p], square + 1);
        add_square<true>(weights[p], square, kLanes, sums[p]);
        ahead += kSquareBytes;
      }
    }
    if (const std::uint32_t left = product_.cols % kLanes; left != 0) {
      for (int p = 0; p < kPanels; ++p) add_square<false>(weights[p], squares, left, sums[p]);
    }
    for (int t = 0; t < kTokens; ++t) {
      for (int p = 0; p < kPanels; ++p) S::store(sums_ + (t * kPanels + p) * S::kLanes, sums[p][t]);
    }
    finish<S>(product_, 0, kTokens, row, rows, PanelSums{sums_, nullptr, kPanels * S::kLanes},
              nullptr);
  }

  template <bool kWhole>
  void add_square(const std::uint8_t* const* weights, std::uint32_t square, std::uint32_t count,
                  __m512* sums) const {
    __m512i columns[16];
    const auto there = static_cast<__mmask16>((1U << count) - 1);
    const auto row = [&](int r) __attribute__((always_inline)) {
      return load_columns<kWeights, kWhole>(weights[r] + kStepBytes * square, there);
    };
    transpose_square(row, columns);
#pragma GCC unroll 2
    for (int first = 0; first < kTokens; first += kSumsAtOnce) {
      constexpr int kMost = kTokens < kSumsAtOnce ? kTokens : kSumsAtOnce;
      const int tokens = kTokens - first < kMost ? kTokens - first : kMost;
      __m512 some[kMost];
#pragma GCC unroll 4
      for (int t = 0; t < tokens; ++t) some[t] = sums[first + t];
#pragma GCC unroll 16
      for (std::uint32_t c = 0; c < 16; ++c) {
        if (!kWhole && c >= count) break;
#pragma GCC unroll 4
        for (int t = 0; t < tokens; ++t) {
          some[t] =
              S::fma(S::as_float(columns[c]), S::set(x_[first + t][16 * square + c]), some[t]);
        }
      }
#pragma GCC unroll 4
      for (int t = 0; t < tokens; ++t) sums[first + t] = some[t];
    }
  }

  const RawProduct& product_;
  float* sums_;  // [kTokens, panels, lanes]
  const float* x_[kTokens];
};

template <FloatWeights kWeights>
bool multiply_float_rows(const RawProduct& product, std::uint32_t row_begin, std::uint32_t row_end,
                         const Scratch& scratch) {
  const auto run = [&](auto rows) {
    rows.run(row_begin, row_end);
    return true;
  };
  switch (product.tokens) {
    case 1:
      return run(FloatRows<kWeights, 1>(product, scratch.sums));
    case 2:
      return run(FloatRows<kWeights, 2>(product, scratch.sums));
    case 3:
      return run(FloatRows<kWeights, 3>(product, scratch.sums));
    case 4:
      return run(FloatRows<kWeights, 4>(product, scratch.sums));
    case 5:
      return run(FloatRows<kWeights, 5>(product, scratch.sums));
    case 6:
      return run(FloatRows<kWeights, 6>(product, scratch.sums));
    case 7:
      return run(FloatRows<kWeights, 7>(product, scratch.sums));
    case 8:
      return run(FloatRows<kWeights, 8>(product, scratch.sums));
    default:
      return false;
  }
}

}  // namespace
}  // namespace edgerunner::cpu
