#pragma once

// Up to kDirectTokens rows of bfloat16 activations. Weights are the first operand of a tile's
// products, as they stand in the file where they are bfloat16; activations are laid out by pairs
// once. So few operations are left for a weight that memory is what they wait for.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/amx/bf16_weights.h"
#include "backend/cpu/kernels/amx/tiles.h"
#include "backend/cpu/kernels/avx512/simd.h"
#include "backend/cpu/kernels/avx512/transpose.h"
#include "backend/cpu/kernels/fetch.h"
#include "backend/cpu/kernels/instruction_sets.h"
#include "backend/cpu/kernels/outputs.h"
#include "backend/cpu/kernels/scratch.h"

namespace edgerunner::cpu {
namespace {

template <bool kFromHalves>
class Bf16Few {
 public:
  Bf16Few(const RawProduct& product, const Scratch& scratch)
      : product_(product),
        scratch_(scratch),
        tokens_(product.tokens),
        steps_(bf16_steps(product.cols)),
        whole_steps_(product.cols / kStepColumns) {}

  void run(std::uint32_t row_begin, std::uint32_t row_end) const {
    const auto narrow = static_cast<std::uint8_t>(pair_bytes());
    const Tiles tiles(TileWidths{{narrow, narrow, narrow, 64, 64, narrow, 64, 64}});
    for (std::uint32_t row = row_begin; row < row_end; row += kMostRows) {
      const std::uint32_t rows = row_end - row < kMostRows ? row_end - row : kMostRows;
      add_all(row, rows, row_end);
      for (std::uint32_t r = 0; tokens_ > 1 && r < rows; r += kRows) transpose_sums(r);
      finish<Avx512>(product_, 0, tokens_, row, rows, PanelSums{scratch_.sums, nullptr, kMostRows},
                     nullptr);
    }
  }

 private:
  static constexpr std::uint32_t kRows = kTileRows;
  static constexpr std::uint32_t kTogether = 2;  // tiles of weight rows whose sums are under way
  // Whose sums stand in scratch at once. Not 1024, whose outputs of one row of weights would share
  // a set of the level 1 cache.
  static constexpr std::uint32_t kMostRows = 1008;
  static_assert(kMostRows * kDirectTokens * sizeof(float) <= Scratch::kSumsBytes);
  // What was stored is loaded once it has left the queue of stores.
  static constexpr std::uint32_t kStepsAhead = 2;
  static constexpr std::uint32_t kSlots = 4;

  // Of one pair of columns of all rows of activations; of a step.
  std::size_t pair_bytes() const { return sizeof(float) * tokens_; }
  std::size_t operand_bytes() const { return kTileRows * pair_bytes(); }
  // Sums of 16 weight rows, [kRows, tokens], as tiles leave them.
  std::uint8_t* tile_sums(std::uint32_t r) const {
    float* all = tokens_ == 1 ? scratch_.sums : scratch_.term_sums;
    return reinterpret_cast<std::uint8_t*>(all + std::size_t{r} * tokens_);
  }

  void add_all(std::uint32_t row, std::uint32_t rows, std::uint32_t row_end) const {
    const auto fitting = static_cast<std::uint32_t>(Scratch::kPanelBytes / operand_bytes());
    const std::uint32_t chunk = tokens_ == 1 || fitting > steps_ ? steps_ : fitting;
    for (std::uint32_t first = 0; first < steps_; first += chunk) {
      const std::uint32_t end = steps_ - first < chunk ? steps_ : first + chunk;
      lay_out(first, end);
      for (std::uint32_t r = 0; r < rows; r += kTogether * kRows) {
        if (rows - r > kRows) {
          add_rows<2>(row + r, first, end, row_end, tile_sums(r));
        } else {
          add_rows<1>(row + r, first, end, row_end, tile_sums(r));
        }
      }
    }
  }

  // [steps, pairs, tokens] pairs of columns. A single row of activations is that as it stands.
  void lay_out(std::uint32_t first, std::uint32_t end) const {
    if (tokens_ == 1) return;
    const std::uint64_t name = end - first == steps_ ? product_.operand : 0;
    if (scratch_.holds(name, ElementType::bf16, tokens_)) return;
    for (std::uint32_t step = first; step < end; ++step) {
      __m512i columns[kTileRows];
      transpose_square(
          [&](std::uint32_t t) {
            return t < tokens_
                       ? _mm512_loadu_si512(product_.x + t * product_.x_stride + step * kStepBytes)
                       : _mm512_setzero_si512();
          },
          columns);
      std::uint8_t* to = scratch_.panel + (step - first) * operand_bytes();
      for (int p = 0; p < kTileRows; ++p) {
        _mm512_mask_storeu_epi32(to + p * pair_bytes(), mask_of_tokens(), columns[p]);
      }
    }
  }
  __mmask16 mask_of_tokens() const { return static_cast<__mmask16>((1U << tokens_) - 1); }

  const std::uint8_t* operand(std::uint32_t first, std::uint32_t step) const {
    if (tokens_ > 1) return scratch_.panel + (step - first) * operand_bytes();
    return reinterpret_cast<const std::uint8_t*>(product_.x) + step * kStepBytes;
  }

  // The products of up to kTiles * 16 weight rows with steps [first, end).
  template <std::uint32_t kTiles>
  void add_rows(std::uint32_t row, std::uint32_t first, std::uint32_t end, std::uint32_t row_end,
                std::uint8_t* sums) const {
    const std::uint32_t rows = row_end - row < kTiles * kRows ? row_end - row : kTiles * kRows;
    const std::uint8_t* weights = product_.weights + row * product_.row_bytes;
    const std::uint32_t next_row = row + rows;
    const std::uint8_t* next =
        next_row < row_end ? weights + rows * product_.row_bytes : product_.after(row_end);
    Fetch fetch{next + kTiles * kRows * kStepBytes * first,
                next + kTiles * kRows * kStepBytes * end, kTiles * kRows};
    if (first == 0) {
      zero_tile<0>();
      if constexpr (kTiles == 2) zero_tile<1>();
    } else {
      load_tile<0>(sums, pair_bytes());
      if constexpr (kTiles == 2) load_tile<1>(sums + operand_bytes(), pair_bytes());
    }
    std::uint32_t step = first;
    if (!kFromHalves && rows == kTiles * kRows) {  // as they stand in the file
      const std::uint32_t whole = end < whole_steps_ ? end : whole_steps_;
      const std::size_t stride = product_.row_bytes;
      for (; step < whole; ++step) {
        fetch.step();
        add_step<kTiles>(weights + step * kStepBytes, kRows * stride, stride, operand(first, step));
      }
    }
    // Otherwise by way of scratch, some steps before their products.
    const auto slot = [&](std::uint32_t i) {
      return reinterpret_cast<std::uint8_t*>(scratch_.gate) + i % kSlots * kTiles * kTileBytes;
    };
    const auto multiply = [&](std::uint32_t i) {
      add_step<kTiles>(slot(i), kTileBytes, kStepBytes, operand(first, i));
    };
    const std::uint32_t begin = step;
    fetch.lines = 1;  // a row's step
    for (; step < end; ++step) {
      round_step<kTiles>(weights, rows, step, fetch, slot(step));
      if (step >= begin + kStepsAhead) multiply(step - kStepsAhead);
    }
    for (std::uint32_t i = end - begin > kStepsAhead ? end - kStepsAhead : begin; i < end; ++i) {
      multiply(i);
    }
    store_tile<0>(sums, pair_bytes());
    if constexpr (kTiles == 2) store_tile<1>(sums + operand_bytes(), pair_bytes());
  }

  // A step of weight rows, the last row again past the end.
  template <std::uint32_t kTiles>
  [[gnu::always_inline]] void round_step(const std::uint8_t* weights, std::uint32_t rows,
                                         std::uint32_t step, Fetch& fetch, std::uint8_t* to) const {
    const std::uint8_t* from = weights + step * kStepBytes;
    const std::uint32_t rest = step < whole_steps_ ? 0 : product_.cols % kStepColumns;
    for (std::uint32_t r = 0; r < kTiles * kRows; ++r) {
      fetch.step();
      _mm512_store_si512(to + r * kStepBytes, rest == 0 ? load_step<kFromHalves>(from)
                                                        : load_rest<kFromHalves>(from, rest));
      if (r + 1 < rows) from += product_.row_bytes;
    }
  }

  template <std::uint32_t kTiles>
  [[gnu::always_inline]] void add_step(const std::uint8_t* weights, std::size_t second,
                                       std::size_t stride, const std::uint8_t* x) const {
    load_tile<2>(x, pair_bytes());
    load_tile<3>(weights, stride);
    multiply_tiles<0, 3, 2>();
    if constexpr (kTiles == 2) {
      load_tile<4>(weights + second, stride);
      multiply_tiles<1, 4, 2>();
    }
  }

  // From [kRows, tokens] to [tokens, kMostRows].
  void transpose_sums(std::uint32_t r) const {
    const std::uint8_t* from = tile_sums(r);
    __m512i columns[kTileRows];
    transpose_square(
        [&](std::uint32_t i) {
          return _mm512_maskz_loadu_epi32(mask_of_tokens(), from + i * pair_bytes());
        },
        columns);
    for (std::uint32_t t = 0; t < tokens_; ++t) {
      _mm512_storeu_si512(scratch_.sums + t * kMostRows + r, columns[t]);
    }
  }

  const RawProduct& product_;
  const Scratch& scratch_;
  std::uint32_t tokens_;
  std::uint32_t steps_;
  std::uint32_t whole_steps_;
};

}  // namespace
}  // namespace edgerunner::cpu
