#pragma once

// Few rows of activations times weights of f32, bfloat16 and f16. Outputs are sums over single
// columns or pairs of them in their order, so that weights are transposed, a square of 16 rows by
// 16 such steps at a time, but multiplied from the registers.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/avx512/simd.h"
#include "backend/cpu/kernels/avx512/transpose.h"
#include "backend/cpu/kernels/instruction_sets.h"
#include "backend/cpu/kernels/panel_product.h"

namespace edgerunner::cpu {
namespace {

// How weights stand in the file, and, where they are halves, what they are multiplied as.
enum class FloatWeights : std::uint8_t { f32, bf16, f16, bf16_as_f32, f16_as_f32 };

constexpr bool in_pairs(FloatWeights weights) {
  return weights == FloatWeights::bf16 || weights == FloatWeights::f16;
}
// 16-bit words of a row that a square takes in.
constexpr std::uint32_t square_words(FloatWeights weights) {
  return weights == FloatWeights::f32 || in_pairs(weights) ? 32 : 16;
}

// 16 steps of a row: all of them, or those that the 16-bit words of `words` hold.
template <FloatWeights kWeights, bool kWhole>
inline __m512i load_steps(const std::uint8_t* p, __mmask32 words) {
  if constexpr (square_words(kWeights) == 16) {
    const auto* from = reinterpret_cast<const __m256i*>(p);
    const __m256i halves = kWhole ? _mm256_loadu_si256(from)
                                  : _mm256_maskz_loadu_epi16(static_cast<__mmask16>(words), from);
    if constexpr (kWeights == FloatWeights::f16_as_f32) {
      return _mm512_castps_si512(_mm512_cvtph_ps(halves));
    }
    return _mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16);
  } else if constexpr (kWhole) {
    return _mm512_loadu_si512(p);
  } else {
    const __m512i row = _mm512_maskz_loadu_epi16(words, p);
    return kWeights == FloatWeights::f16 ? halves_to_bf16(row) : row;
  }
}

// A square at `offset` of 16 rows, as a vector a step with a row a lane.
template <FloatWeights kWeights, bool kWhole>
inline void load_float_square(const std::uint8_t* const* rows, std::size_t offset, __mmask32 words,
                              __m512i out[16]) {
  if constexpr (kWhole && kWeights == FloatWeights::f16) {
    // A conversion of two rows' halves puts them where a pair belongs.
    load_half_columns8(rows, offset, out);
    load_half_columns8(rows, offset + 32, out + 8);
  } else {
    const auto row = [&](int r) __attribute__((always_inline)) {
      return load_steps<kWeights, kWhole>(rows[r] + offset, words);
    };
    transpose_square(row, out);
  }
}

template <FloatWeights kWeights, int kTokens>
class FloatRows {
 public:
  using S = Avx512;

  FloatRows(const RawProduct& product, float* sums)
      : product_(product),
        words_(product.cols * (kWeights == FloatWeights::f32 ? 2 : 1)),
        sums_(sums) {
    for (std::uint32_t t = 0; t < kTokens; ++t) x_[t] = product.x + t * product.x_stride;
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
  static constexpr std::uint32_t kWords = square_words(kWeights);
  // Two panels in turn, so that the sums of one are not waited for while the other's are under way,
  // where both leave registers for a square.
  static constexpr std::uint32_t kMostPanels = kTokens <= 2 ? 2 : 1;
  static constexpr std::uint32_t kRows = kMostPanels * kLanes;
  static constexpr std::size_t kSquareBytes = std::size_t{2} * kWords * kLanes;
  // Sums beside the sixteen vectors of a square; the others wait in memory.
  static constexpr int kSumsAtOnce = 4;

  static void prefetch(const std::uint8_t* begin, std::size_t size) {
    for (std::size_t line = 0; line < size; line += 64) __builtin_prefetch(begin + line, 0, 2);
  }

  // Into the level 1 cache, since a square begins with all of its loads.
  static void prefetch_square(const std::uint8_t* const* rows, std::uint32_t square) {
#pragma GCC unroll 16
    for (std::uint32_t r = 0; r < kLanes; ++r) {
      __builtin_prefetch(rows[r] + std::size_t{2} * kWords * square, 0, 3);
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
    const std::uint32_t squares = words_ / kWords;
    for (std::uint32_t square = 0; square < squares; ++square) {
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) {
        prefetch(ahead, kSquareBytes);
        prefetch_square(weights[p], square + 1);
        add_square<true>(weights[p], square, 0, 16, sums[p]);
        ahead += kSquareBytes;
      }
    }
    if (const std::uint32_t left = words_ % kWords; left != 0) {
      const std::uint32_t steps = kWords == 32 ? (left + 1) / 2 : left;
      for (int p = 0; p < kPanels; ++p) {
        add_square<false>(weights[p], squares, (1U << left) - 1, steps, sums[p]);
      }
    }
    for (int t = 0; t < kTokens; ++t) {
      for (int p = 0; p < kPanels; ++p) S::store(sums_ + (t * kPanels + p) * S::kLanes, sums[p][t]);
    }
    finish<S>(product_, 0, kTokens, row, rows, PanelSums{sums_, nullptr, kPanels * S::kLanes},
              nullptr);
  }

  template <bool kWhole>
  void add_square(const std::uint8_t* const* weights, std::uint32_t square, __mmask32 words,
                  std::uint32_t steps, __m512* sums) const {
    __m512i columns[16];
    load_float_square<kWeights, kWhole>(weights, std::size_t{2} * kWords * square, words, columns);
#pragma GCC unroll 2
    for (int first = 0; first < kTokens; first += kSumsAtOnce) {
      constexpr int kMost = kTokens < kSumsAtOnce ? kTokens : kSumsAtOnce;
      const int count = kTokens - first < kMost ? kTokens - first : kMost;
      __m512 some[kMost];
#pragma GCC unroll 4
      for (int t = 0; t < count; ++t) some[t] = sums[first + t];
#pragma GCC unroll 16
      for (std::uint32_t c = 0; c < 16; ++c) {
        if (!kWhole && c >= steps) break;
#pragma GCC unroll 4
        for (int t = 0; t < count; ++t) {
          const __m512i x = S::broadcast(x_[first + t] + std::size_t{64} * square + 4 * c);
          if constexpr (in_pairs(kWeights)) {
            some[t] = S::dot_bf16(some[t], columns[c], x);
          } else {
            some[t] = S::fma(S::as_float(columns[c]), S::as_float(x), some[t]);
          }
        }
      }
#pragma GCC unroll 4
      for (int t = 0; t < count; ++t) sums[first + t] = some[t];
    }
  }

  const RawProduct& product_;
  std::uint32_t words_;  // of 16 bits, of a row
  float* sums_;          // [kTokens, panels, lanes]
  const std::byte* x_[kTokens];
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
